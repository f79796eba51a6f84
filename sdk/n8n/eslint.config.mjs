// The rules of n8n's own linter (n8n-node lint), without its program, which brings much that is not needed here.
import js from "@eslint/js";
import { n8nCommunityNodesPlugin } from "@n8n/eslint-plugin-community-nodes";
import nodesBase from "eslint-plugin-n8n-nodes-base";
import typescript from "typescript-eslint";

const community = n8nCommunityNodesPlugin.configs.recommended;

export default typescript.config(
  { ignores: ["dist", "test", "package-lock.json", "tsconfig.json"] },
  { files: ["**/*.ts"], extends: [js.configs.recommended, typescript.configs.recommended, community], rules: { "no-console": "error" } },
  { plugins: { "n8n-nodes-base": nodesBase } },
  {
    files: ["package.json"],
    extends: [community],
    rules: {
      ...nodesBase.configs.community.rules,
      // The project publishes no home page, repository or address of a person.
      "@n8n/community-nodes/require-homepage": "off",
      "@n8n/community-nodes/valid-author": "off",
      "n8n-nodes-base/community-package-json-author-missing": "off",
      "n8n-nodes-base/community-package-json-author-name-missing": "off",
      "n8n-nodes-base/community-package-json-author-email-missing": "off",
      "n8n-nodes-base/community-package-json-repository-url-missing": "off",
      // It is under the licence of Largesse.
      "n8n-nodes-base/community-package-json-license-not-default": "off",
    },
    languageOptions: { parser: typescript.parser, parserOptions: { extraFileExtensions: [".json"] } },
  },
  {
    files: ["credentials/**/*.ts"],
    rules: {
      ...nodesBase.configs.credentials.rules,
      "n8n-nodes-base/cred-class-field-documentation-url-missing": "off", // there is none to lead to
      "n8n-nodes-base/cred-class-field-documentation-url-miscased": "off",
      "n8n-nodes-base/cred-class-field-type-options-password-missing": "off",
    },
  },
  {
    files: ["nodes/**/*.ts"],
    rules: {
      ...nodesBase.configs.nodes.rules,
      "n8n-nodes-base/node-class-description-inputs-wrong-regular-node": "off",
      "n8n-nodes-base/node-class-description-outputs-wrong": "off",
      "n8n-nodes-base/node-param-type-options-max-value-present": "off",
    },
  },
);
