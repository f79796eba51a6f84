// The rules of a call: what to send, when to send it again, and when to give up.
//
// A request is sent again only if that does no harm (`isRepeatable`): after no answer or half an answer, and after a status of a failure
// that may pass. Waits double, and are drawn at random from their upper half. A `Retry-After` is followed.

import { readAnswer, type Answer } from "./answers.js";
import { NEW_CONNECTION } from "./connections.js";
import { NotFound } from "./generated/problems.js";
import { OPERATIONS } from "./generated/tables.js";
import type { Answers } from "./generated/types.js";
import { readSetting } from "./inputs.js";
import { stringify } from "./json.js";
import { LargesseError, NoAnswer, Problem, Unreachable, UnreadableAnswer } from "./problem.js";
import { VERSION } from "./version.js";

export type OperationName = keyof Answers;

/** The last argument of every operation: `signal` ends the call, `timeoutMs` is the time limit of one attempt. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Names that the service does not know and ignored: it may be older than this client. */
export interface Ignored {
  readonly operation: OperationName;
  readonly names: readonly string[];
  readonly requestId: string | null;
}

export interface Settings {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly patienceMs: number;
  readonly fetch: typeof fetch;
  readonly onIgnored: (ignored: Ignored) => void;
}

/** One request. */
export interface Request {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Whether its effect is the same however often it arrives; true for all but POST. */
  readonly isRepeatable?: boolean;
  /** Whether a 404 after an attempt without an answer means that the attempt succeeded. */
  readonly ends?: boolean;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 8_000;
export const LONGEST_TIMEOUT_MS = 3_600_000;
export const MOST_BYTES = 64 * 2 ** 20;
// Each call has a connection, and a process may open only so many: often 1,024, and 256 on macOS.
const MOST_CALLS = 100;
// Failures that may pass: the request was too slow, there were too many, the service failed, or a proxy could not reach it.
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
// The codes of runtimes for errors without a connection.
const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket|DNS\w*|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/;

// How OpenSSL 1 and 3 call the answer of a server that speaks plain HTTP.
const NO_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/;

/** Lets at most MOST_CALLS calls go on at once. Further ones wait for their turn, in the order in which they came. */
class Turns {
  #free = MOST_CALLS;
  readonly #waiting: (() => void)[] = [];

  /** Waits until the call may begin. Rejects with the reason of an aborted signal. */
  async begin(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) throw signal.reason;
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const abort = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.push(enter);
    });
  }

  end(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

/** Calls one service, with retries by its settings. */
export class Asker {
  readonly #settings: Settings;
  readonly #turns = new Turns();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Returns the answer's value. Throws LargesseError, or the reason of an aborted signal. */
  async ask<K extends OperationName>(operation: K, request: Request = {}, options: CallOptions = {}): Promise<Answers[K]> {
    // A timer with a longer time, or with no number, ends at once.
    if (options.timeoutMs !== undefined) readSetting("timeoutMs", options.timeoutMs, 1, LONGEST_TIMEOUT_MS);
    await this.#turns.begin(options.signal);
    try {
      return await this.#ask(operation, request, options);
    } finally {
      this.#turns.end();
    }
  }

  async #ask<K extends OperationName>(operation: K, request: Request, options: CallOptions): Promise<Answers[K]> {
    const { attempts, patienceMs } = this.#settings;
    const began = performance.now();
    const isRepeatable = request.isRepeatable ?? OPERATIONS[operation].method !== "POST";
    let isUnclear = false;
    for (let attempt = 1; ; attempt += 1) {
      let waitMs: number;
      try {
        return (await this.#attempt(operation, request, isRepeatable, options)) as Answers[K];
      } catch (error) {
        if (!(error instanceof LargesseError)) throw error;
        if (error instanceof NotFound && request.ends && isUnclear) return undefined as Answers[K];
        waitMs = isRepeatable && attempt < attempts ? waitAfter(error, attempt) : Infinity;
        if (performance.now() - began + waitMs > patienceMs) throw lastOf(error, OPERATIONS[operation].method, attempt, isUnclear);
        isUnclear ||= !(error instanceof Unreachable);
      }
      await pause(waitMs, options.signal);
    }
  }

  async #attempt(operation: OperationName, request: Request, isRepeatable: boolean, options: CallOptions): Promise<unknown> {
    const { method, path, answer: kind } = OPERATIONS[operation];
    const also: readonly number[] = (OPERATIONS[operation] as { also?: readonly number[] }).also ?? [];
    const { baseUrl } = this.#settings;
    const where = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(request.path?.[name])));
    const what = `${method} ${where}`;
    // If a DELETE arrived twice, the second answer is 404, although the first one succeeded.
    const isOnce = !isRepeatable || request.ends === true;
    const answer = await this.#send(method, `${where}${queryOf(request.query)}`, what, request.body, isOnce, options);
    const ignored = answer.headers.get("x-ignored");
    if (ignored) {
      const names = ignored.split(",").map((name) => name.trim());
      this.#settings.onIgnored({ operation, names, requestId: answer.headers.get("x-request-id") });
    }
    return readAnswer({ what, kind, also, baseUrl }, answer);
  }

  async #send(method: string, path: string, what: string, body: unknown, isOnce: boolean, options: CallOptions): Promise<Answer> {
    const { signal, timeoutMs = this.#settings.timeoutMs } = options;
    const requestId = randomId();
    const ending = new AbortController();
    const abort = () => ending.abort(signal?.reason);
    if (signal?.aborted) throw signal.reason;
    signal?.addEventListener("abort", abort, { once: true });
    let hasTimedOut = false;
    const timer = setTimeout(() => {
      hasTimedOut = true;
      ending.abort();
    }, timeoutMs);
    try {
      const response = await this.#settings.fetch(this.#settings.baseUrl + path, {
        method,
        headers: this.#headers(requestId, body !== undefined),
        ...(body === undefined ? {} : { body: stringify(body) }),
        redirect: "manual",
        signal: ending.signal,
        ...(isOnce ? NEW_CONNECTION : {}),
      });
      return { status: response.status, headers: response.headers, body: await readBody(response) };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      const why = hasTimedOut ? `it did not arrive whole within ${timeoutMs} ms` : reasonOf(error);
      throw noAnswer(what, why, !hasTimedOut && isNotConnected(error), requestId, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  #headers(requestId: string, hasBody: boolean): Record<string, string> {
    return {
      Authorization: `Bearer ${this.#settings.apiKey}`,
      Accept: "application/json",
      "User-Agent": `largesse-client/${VERSION} typescript`,
      "X-Request-Id": requestId,
      ...(hasBody ? { "Content-Type": "application/json" } : {}),
    };
  }
}

/** Returns the whole body. Throws if it has more than MOST_BYTES. */
async function readBody(response: Response): Promise<Uint8Array> {
  if (!response.body) return new Uint8Array();
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    chunks.push(part.value);
    length += part.value.length;
    if (length > MOST_BYTES) {
      await reader.cancel();
      throw new Error(`the answer is larger than ${MOST_BYTES} bytes`);
    }
  }
  if (chunks.length === 1) return chunks[0]!;
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

function queryOf(query: Readonly<Record<string, unknown>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the causes of an error, the outermost first. */
function causesOf(error: unknown): { code?: unknown; message?: unknown }[] {
  const causes = [];
  for (let cause = error; typeof cause === "object" && cause !== null && causes.length < 5; cause = (cause as Error).cause) causes.push(cause);
  return causes;
}

function isNotConnected(error: unknown): boolean {
  return causesOf(error).some(({ code, message }) => NOT_CONNECTED.test(String(code)) || /client error \(Connect\)/.test(String(message)));
}

function reasonOf(error: unknown): string {
  const causes = causesOf(error);
  const said = causes.map(({ message }) => String(message).trim()).filter((text) => text && text !== "undefined");
  if (causes.some(({ code }) => NO_TLS.test(String(code)))) said.push("the server speaks no TLS there. Does the base URL begin with http://?");
  return said.length ? said.join(": ") : String(error);
}

function noAnswer(what: string, why: string, isUnreachable: boolean, requestId: string, cause: unknown): NoAnswer {
  const kind = isUnreachable ? Unreachable : NoAnswer;
  const said = isUnreachable ? "no connection could be made" : "no complete answer arrived";
  const error = new kind(`${what}: ${said} (${why}) (request id ${requestId})`, { cause });
  error.requestId = requestId;
  return error;
}

/** Returns how long to wait before the next attempt; Infinity if there is none. */
function waitAfter(error: LargesseError, attempt: number): number {
  const isAnswer = error instanceof Problem || error instanceof UnreadableAnswer;
  const isPassing = isAnswer && PASSING.has(error.status);
  const isCutShort = error instanceof UnreadableAnswer && error.isCutShort;
  if (!isPassing && !isCutShort && !(error instanceof NoAnswer)) return Infinity;
  const longest = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  const drawn = longest / 2 + (Math.random() * longest) / 2;
  return Math.max(drawn, isAnswer ? (error.retryAfterMs ?? 0) : 0);
}

/** Returns the error that the last attempt ended with, as callers see it.
 *
 * If an earlier attempt may have been carried out, Unreachable becomes NoAnswer: the last one did not arrive, but an earlier one may have. */
function lastOf(error: LargesseError, method: string, attempt: number, isUnclear: boolean): LargesseError {
  let last = error;
  if (error instanceof Unreachable && isUnclear) {
    last = new NoAnswer(error.message, { cause: error });
    last.requestId = error.requestId;
  }
  last.attempts = attempt;
  if (last instanceof NoAnswer && !(last instanceof Unreachable) && method !== "GET") last.message += " It may have been carried out.";
  if (attempt > 1) last.message += ` It was tried ${attempt} times.`;
  return last;
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

