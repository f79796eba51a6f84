import { asking } from "./lib/client.js";

export const authentication = {
  type: "custom",
  fields: [
    {
      key: "baseUrl",
      label: "Address",
      type: "string",
      required: true,
      placeholder: "https://gifts.example.com",
      helpText: "The address of your Largesse.",
    },
    { key: "apiKey", label: "API key", type: "password", required: true, helpText: "An API key that may read, send and manage webhooks." },
  ],
  test: asking((largesse) => largesse.me()),
  connectionLabel: "{{customerName}} ({{environment}})",
};
