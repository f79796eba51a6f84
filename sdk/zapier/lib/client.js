import { InvalidArgument, Largesse, LargesseError, Problem } from "largesse-client";

// Zapier ends a step after 30 seconds.
const OPTIONS = { timeoutMs: 12_000, patienceMs: 12_000, onIgnored: () => undefined };

/** Returns a function as Zapier calls it; `ask` gets a client, the bundle and z. Amounts in what it returns are texts, such as "10.00". */
export function asking(ask) {
  return async (z, bundle) => {
    try {
      const largesse = new Largesse(bundle.authData.baseUrl, bundle.authData.apiKey, OPTIONS);
      return plain(await ask(largesse, bundle, z));
    } catch (error) {
      throw explained(error, z);
    }
  };
}

/** Returns what JSON makes of a value: a Decimal is a text. */
export function plain(value) {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Returns a page of a list, the first at 0. */
export async function paged(list, page, size = 200) {
  const found = [];
  let passed = 0;
  for await (const item of list) {
    passed += 1;
    if (passed > page * size) found.push(item);
    if (found.length === size) break;
  }
  return found;
}

/** Returns the error that Zapier shows. */
function explained(error, z) {
  if (!(error instanceof LargesseError)) return error;
  if (error instanceof Problem) {
    if (error.status === 401) return new z.errors.Error(error.message, "AuthenticationError", 401);
    if (error.retryAfterMs !== null) return new z.errors.ThrottledError(error.message, Math.ceil(error.retryAfterMs / 1_000));
    return new z.errors.Error(error.message, error.type, error.status);
  }
  return new z.errors.Error(error.message, error.name, error instanceof InvalidArgument ? 400 : 503);
}
