// The app. Its parts call Largesse through the TypeScript client, which repeats only what is safe and resolves a 409 to its order.

import { readFileSync } from "node:fs";
import { version as platformVersion } from "zapier-platform-core";
import { authentication } from "./authentication.js";
import { sendGift, sendTemplate } from "./creates/send.js";
import { findOrder } from "./searches/find-order.js";
import { EVENTS } from "./triggers/events.js";
import { MENUS } from "./triggers/menus.js";

const { version } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8"));
const byKey = (parts) => Object.fromEntries(parts.map((part) => [part.key, part]));

export default {
  version,
  platformVersion,
  authentication,
  triggers: byKey([...EVENTS, ...MENUS]),
  creates: byKey([sendGift, sendTemplate]),
  searches: byKey([findOrder]),
};
