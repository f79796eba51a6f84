// Lists in pages, as async iterators. Each page is requested when the one before is used up.

import type { Asker, CallOptions, OperationName } from "./asking.js";
import { QUERIES } from "./generated/tables.js";
import type { Answers } from "./generated/types.js";
import { readQuery, type Inputs, type Members } from "./inputs.js";
import { InvalidArgument } from "./problem.js";

/** The items of a list, for `for await`. */
export type Listing<T> = AsyncIterableIterator<T>;

/** The arguments of a list. */
interface Given {
  readonly pageSize?: number | undefined;
  readonly [name: string]: unknown;
}

type Item<K extends OperationName> = Answers[K] extends readonly (infer T)[] ? T : never;

/** Lists the items of all pages; `then` returns what the query of the next page changes. A page that is not full is the last.
 *
 * An argument that is undefined or null counts as left out, so its default applies. */
export function pages<K extends OperationName>(
  asker: Asker,
  operation: K,
  defaults: Given,
  given: object,
  then: (page: readonly Item<K>[], query: Members) => Members,
  path: Readonly<Record<string, string | number>> = {},
  options?: CallOptions,
): Listing<Item<K>> {
  const members = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  const { pageSize: limit, ...others }: Given = { ...defaults, ...Object.fromEntries(members) };
  const inputs: Inputs = { ...QUERIES[operation], pageSize: QUERIES[operation]!.limit! };
  const { pageSize, ...query } = readQuery(inputs, { ...others, pageSize: limit });
  if (typeof pageSize !== "number") throw new InvalidArgument("pageSize", "must be a number.");
  return walk(asker, operation, { ...query, limit: pageSize }, pageSize, then, path, options);
}

/** Lists the items of pages that are requested by the number of items to skip. */
export function byOffset<K extends OperationName>(
  asker: Asker,
  operation: K,
  given: Given,
  path: Readonly<Record<string, string | number>>,
  options?: CallOptions,
): Listing<Item<K>> {
  const then = (page: readonly Item<K>[], query: Members) => ({ offset: (query.offset as number) + page.length });
  return pages(asker, operation, { offset: 0, pageSize: 100 }, given, then, path, options);
}

/** Lists the items of pages that are requested by the last `id` of the page before. A service that does not know `before` uses `offset`. */
export function newestFirst<K extends "listTemplates" | "listUsers">(asker: Asker, operation: K, given: Given, options?: CallOptions): Listing<Item<K>> {
  const then = (page: readonly Item<K>[], query: Members) => {
    const last = page.at(-1) as unknown as { id: number };
    return { offset: (query.offset as number) + page.length, before: last.id };
  };
  return pages(asker, operation, { offset: 0, pageSize: 100 }, given, then, {}, options);
}

/** Lists the items of a list that comes in one piece. */
export function whole<K extends OperationName>(asker: Asker, operation: K, given: object, options?: CallOptions): Listing<Item<K>> {
  const query = readQuery(QUERIES[operation] ?? {}, given);
  return walk(asker, operation, query, Infinity, () => ({}), {}, options);
}

async function* walk<K extends OperationName>(
  asker: Asker,
  operation: K,
  first: Members,
  size: number,
  then: (page: readonly Item<K>[], query: Members) => Members,
  path: Readonly<Record<string, string | number>>,
  options?: CallOptions,
): Listing<Item<K>> {
  for (let query = first; ; ) {
    const page = (await asker.ask(operation, { path, query }, options)) as unknown as readonly Item<K>[];
    yield* page;
    if (page.length < size) return;
    query = { ...query, ...then(page, query) };
  }
}
