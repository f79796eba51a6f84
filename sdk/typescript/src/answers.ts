// Reads answers: returns the value of a good one, and throws the error for any other.

import { PROBLEMS, ReferenceUsed } from "./generated/problems.js";
import { parse, type Json } from "./json.js";
import { type FieldError, Problem, UnreadableAnswer } from "./problem.js";
import { reader, ShapeError } from "./shapes.js";

const ORDER = /^\/orders\/([0-9A-Za-z]{1,64})$/;

/** A whole HTTP response. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** How to read the answer of an operation. */
export interface Expected {
  /** The request as errors name it: `GET /me`. */
  readonly what: string;
  readonly kind: string;
  readonly also: readonly number[];
  readonly baseUrl: string;
}

/** Returns the value of a good answer. Throws Problem or UnreadableAnswer for any other. */
export function readAnswer(expected: Expected, answer: Answer): unknown {
  const isGood = (answer.status >= 200 && answer.status < 300) || expected.also.includes(answer.status);
  if (!isGood) throw readProblem(answer) ?? unreadable(expected, answer, isElsewhere(expected, answer));
  if (expected.kind === "nothing") return undefined;
  if (mediaType(answer) !== "application/json") throw unreadable(expected, answer, isElsewhere(expected, answer));
  try {
    return reader(expected.kind)(parse(decode(answer.body)), "");
  } catch (error) {
    if (!(error instanceof ShapeError || error instanceof SyntaxError || error instanceof TypeError)) throw error;
    const failed = unreadable(expected, answer, `it cannot be understood: ${error.message}`, error);
    failed.isCutShort = !(error instanceof ShapeError);
    throw failed;
  }
}

/** Returns the problem in an answer; null if it is not a problem of Largesse. */
function readProblem(answer: Answer): Problem | null {
  if (mediaType(answer) !== "application/problem+json") return null;
  let body: Json;
  try {
    body = parse(decode(answer.body));
  } catch {
    return null;
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return null;
  const { type, title, detail, instance, errors } = body as { [name: string]: Json };
  if (typeof type !== "string") return null;
  const slug = type.slice(type.lastIndexOf("/problems/") + "/problems/".length);
  const kind = Object.hasOwn(PROBLEMS, slug) ? PROBLEMS[slug]! : Problem;
  const said = {
    status: answer.status,
    type,
    title: textOf(title),
    detail: textOf(detail),
    instance: textOf(instance),
    errors: Array.isArray(errors) ? (errors as unknown[]).filter(isFieldError) : [],
  };
  const problem = new kind(said, answer.headers.get("x-request-id"));
  problem.retryAfterMs = retryAfterMs(answer.headers.get("retry-after"));
  if (problem instanceof ReferenceUsed) problem.orderReference = ORDER.exec(said.instance ?? "")?.[1] ?? null;
  return problem;
}

function unreadable(expected: Expected, answer: Answer, why: string, cause?: unknown): UnreadableAnswer {
  const kind = mediaType(answer) || "no content type";
  const requestId = answer.headers.get("x-request-id");
  const request = requestId ? ` (request id ${requestId})` : "";
  const text = `${expected.what} was answered ${answer.status} with ${kind}, ${answer.body.length} bytes: ${why}${request}`;
  const error = new UnreadableAnswer(text, { cause });
  error.status = answer.status;
  error.requestId = requestId;
  error.retryAfterMs = retryAfterMs(answer.headers.get("retry-after"));
  return error;
}

function isElsewhere(expected: Expected, answer: Answer): string {
  const location = answer.headers.get("location")?.slice(0, 80);
  const what = location ? `a redirect to ${location}` : "no answer of Largesse";
  return `that is ${what}. Is the base URL right? It is ${expected.baseUrl}`;
}

function decode(body: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(body);
}

function mediaType(answer: Answer): string {
  return (answer.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase().slice(0, 80);
}

/** Returns the milliseconds of a Retry-After, which may be a date; null if it is missing or cannot be read. */
export function retryAfterMs(header: string | null, now = Date.now()): number | null {
  const text = (header ?? "").trim();
  if (/^[0-9]+$/.test(text)) return Number(text.slice(0, 80)) * 1_000;
  const at = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

function textOf(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function isFieldError(value: unknown): value is FieldError {
  const { pointer, detail } = (value ?? {}) as { pointer?: unknown; detail?: unknown };
  return typeof pointer === "string" && typeof detail === "string";
}
