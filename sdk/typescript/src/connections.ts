// Requests that must arrive only once. Bun and Deno repeat a request by themselves if a reused connection breaks before the answer, although the
// server may have carried out the request. So these requests use a new connection.

interface DenoRuntime {
  createHttpClient(options: { poolMaxIdlePerHost: number }): object;
}

const { Deno: deno } = globalThis as { Deno?: DenoRuntime };

/** The options that make fetch use a new connection. */
export const NEW_CONNECTION: RequestInit = {
  keepalive: false, // Bun
  ...(deno?.createHttpClient ? { client: deno.createHttpClient({ poolMaxIdlePerHost: 0 }) } : {}),
};
