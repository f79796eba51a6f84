// What a call costs beside the same request made with fetch alone: processor time of this process, the median of the rounds.
//
//     LARGESSE=http://127.0.0.1:8000 LARGESSE_API_KEY=… node bench/overhead.mjs
import { Largesse } from "largesse-client";

const { LARGESSE: url, LARGESSE_API_KEY: key } = process.env;
const CALLS = Number(process.env.CALLS ?? 50);
const ROUNDS = Number(process.env.ROUNDS ?? 9);
const largesse = new Largesse(url, key);
const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
const ask = async (path, init) => (await fetch(url + path, { headers, ...init })).json();
const all = async (list) => {
  const found = [];
  for await (const item of list) found.push(item);
  return found;
};

const [account] = await all(largesse.fundingAccounts.list());
const coffee = (await all(largesse.products.list())).find((one) => one.name === "Coffee House e-gift");
const gift = { productId: coffee.id, value: 5, codeQuantity: 1, accountId: account.id };
const CASES = {
  me: [() => largesse.me(), () => ask("/me")],
  "send.gift": [() => largesse.send.gift(gift), () => ask("/send/gift", { method: "POST", body: JSON.stringify(gift) })],
  "products.list": [() => all(largesse.products.list()), () => ask("/products?page=1")],
};

async function cost(call) {
  const before = process.cpuUsage();
  for (let at = 0; at < CALLS; at += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const median = (numbers) => numbers.sort((one, other) => one - other)[numbers.length >> 1];

for (const [name, [ours, theirs]] of Object.entries(CASES)) {
  await cost(ours);
  await cost(theirs);
  const rounds = [];
  for (let at = 0; at < ROUNDS; at += 1) rounds.push([await cost(ours), await cost(theirs)]);
  const [mine, bare] = [0, 1].map((at) => median(rounds.map((one) => one[at])));
  const ratio = median(rounds.map(([one, other]) => one / other));
  console.log(JSON.stringify({ name, micros: Math.round(mine), fetchMicros: Math.round(bare), ratio: Number(ratio.toFixed(2)) }));
}
