// Requests that must arrive once. Bun and Deno send a request again by themselves if a connection that was used before breaks before the
// answer came. Nothing tells them that the server may have carried the request out. So these requests use a new connection.

interface DenoRuntime {
  createHttpClient(options: { poolMaxIdlePerHost: number }): object;
}

const { Deno: deno } = globalThis as { Deno?: DenoRuntime };

/** What makes fetch use a new connection. */
export const NEW_CONNECTION: RequestInit = {
  keepalive: false, // Bun
  ...(deno?.createHttpClient ? { client: deno.createHttpClient({ poolMaxIdlePerHost: 0 }) } : {}),
};
