// Orders with the client that openapi-generator (typescript-fetch) makes, and prints what came back as JSON.
import { Configuration, OrdersApi, ProblemFromJSON, ResponseError } from "./client";
import type { Problem, SendGift, SendResponse } from "./client";

declare const process: { env: Record<string, string>; exitCode: number };

const gift = { productId: Number(process.env.PRODUCT_ID), value: 5, accountId: Number(process.env.ACCOUNT_ID) };
const orders = new OrdersApi(
  new Configuration({ basePath: process.env.LARGESSE, accessToken: process.env.LARGESSE_API_KEY }),
);

function placed(members: Partial<SendGift>): Promise<SendResponse> {
  return orders.sendGift({ sendGift: { ...gift, ...members } });
}

async function refused(members: Partial<SendGift>): Promise<Problem> {
  try {
    await placed(members);
  } catch (error) {
    if (error instanceof ResponseError) return ProblemFromJSON(await error.response.json());
    throw error;
  }
  throw new Error("it was placed");
}

async function main(): Promise<void> {
  const emailed = await placed({
    recipients: [{ email: "sam@example.com", name: "Sam" }],
    externalReference: process.env.REFERENCE,
  });
  const again = await refused({ codeQuantity: 1, externalReference: process.env.REFERENCE });
  const batch = await placed({ codeQuantity: 2 });
  const wrong = await refused({ recipients: [{ email: "sam" }, { email: "kim@example.com" }, { email: "" }] });
  const listed = await orders.listOrders({ after: Number(process.env.AFTER), limit: 50 });
  const found = await orders.getOrder({ reference: batch.reference ?? "" });
  console.log(
    JSON.stringify({
      emailed: [emailed.reference, emailed.codeCount, emailed.totalCost],
      batch: [batch.reference, ...batch.codes.map((code) => code.code)],
      found: [found.reference, ...found.codes.map((code) => code.code)],
      used: [again.status, again.type, again.instance],
      wrong: [wrong.status, wrong.type, ...(wrong.errors ?? []).map((error) => error.pointer)],
      listed: listed.map((order) => order.reference),
    }),
  );
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
