// Orders with the client that @hey-api/openapi-ts makes, and prints what came back as JSON.
import { client } from "./client/client.gen";
import { getOrder, listOrders, sendGift } from "./client";
import type { Problem, SendGift, SendResponse } from "./client";

declare const process: { env: Record<string, string>; exitCode: number };

const gift = { productId: Number(process.env.PRODUCT_ID), value: 5, accountId: Number(process.env.ACCOUNT_ID) };
client.setConfig({ baseUrl: process.env.LARGESSE, auth: process.env.LARGESSE_API_KEY });

async function placed(members: Partial<SendGift>): Promise<SendResponse> {
  const { data } = await sendGift({ body: { ...gift, ...members }, throwOnError: true });
  return data;
}

async function refused(members: Partial<SendGift>): Promise<Problem> {
  const { error } = await sendGift({ body: { ...gift, ...members } });
  if (!error) throw new Error("it was placed");
  return error;
}

async function main(): Promise<void> {
  const emailed = await placed({
    recipients: [{ email: "sam@example.com", name: "Sam" }],
    externalReference: process.env.REFERENCE,
  });
  const again = await refused({ codeQuantity: 1, externalReference: process.env.REFERENCE });
  const batch = await placed({ codeQuantity: 2 });
  const wrong = await refused({ recipients: [{ email: "sam" }, { email: "kim@example.com" }, { email: "" }] });
  const listed = await listOrders({ query: { after: Number(process.env.AFTER), limit: 50 }, throwOnError: true });
  const found = await getOrder({ path: { reference: batch.reference ?? "" }, throwOnError: true });
  console.log(
    JSON.stringify({
      emailed: [emailed.reference, emailed.codeCount, emailed.totalCost],
      batch: [batch.reference, ...batch.codes.map((code) => code.code)],
      found: [found.data.reference, ...found.data.codes.map((code) => code.code)],
      used: [again.status, again.type, again.instance],
      wrong: [wrong.status, wrong.type, ...(wrong.errors ?? []).map((error) => error.pointer)],
      listed: listed.data.map((order) => order.reference),
    }),
  );
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
