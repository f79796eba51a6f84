// Checks arguments before anything is sent. The limits come from the OpenAPI document.

import { Decimal, type AmountInput } from "./decimal.js";
import { INPUTS } from "./generated/tables.js";
import { InvalidArgument } from "./problem.js";

/** The type and the limits of a member of a body, or of a parameter. */
export interface Input {
  readonly kind: string;
  readonly least?: number;
  readonly most?: number;
  readonly fewest?: number;
  readonly longest?: number;
  readonly pattern?: string;
  readonly required?: boolean;
  readonly nullable?: boolean;
}

export type Inputs = Readonly<Record<string, Input>>;
export type Members = { [name: string]: unknown };

const MOST_CODES = 5_000;
const INT32 = 2_147_483_647;
const REFERENCE = /^[0-9A-Za-z]{1,64}$/;
const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const HALF_OF_A_PAIR = /[\uD800-\uDFFF]/u;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;

/** Collects errors, so that all are reported at once. */
export class Faults {
  readonly #found: InvalidArgument[] = [];

  add(argument: string, text: string): undefined {
    this.#found.push(new InvalidArgument(argument, text));
  }

  /** Throws InvalidArgument with all errors, if there are any. */
  end(): void {
    if (this.#found.length) throw InvalidArgument.ofAll(this.#found);
  }
}

/** Decides what null means: in an order or a query it counts as left out, in another body it removes a value. */
type Purpose = "order" | "query" | "body";

/** Returns the given members as they are sent. */
function readInputs(inputs: Inputs, given: object, faults: Faults, purpose: Purpose, prefix = ""): Members {
  const members: Members = {};
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(inputs, name)) faults.add(prefix + name, `does not exist. There are ${Object.keys(inputs).join(", ")}.`);
  }
  for (const [name, input] of Object.entries(inputs)) {
    const value = (given as Members)[name];
    if (value !== undefined && value !== null) members[name] = readInput(input, value, faults, prefix + name, purpose);
    else if (value === null && input.nullable && purpose === "body") members[name] = null;
    else if (input.required) faults.add(prefix + name, "is required.");
  }
  return members;
}

/** Returns the body of a send or a quote. */
export function readOrder(kind: string, given: object): Members {
  const faults = new Faults();
  const { recipients, ...others } = checkObject(given, kind) as Members;
  const isEmpty = Array.isArray(recipients) && recipients.length === 0;
  const body = readInputs(INPUTS[kind]!, isEmpty ? others : given, faults, "order");
  if ("recipients" in body === "codeQuantity" in body) faults.add("recipients", "or `codeQuantity` must be given, one of the two.");
  const people = body.recipients as ({ quantity?: number } | undefined)[] | undefined;
  const count = people?.reduce((sum, one) => sum + (one?.quantity ?? 1), 0) ?? 0;
  if (count > MOST_CODES) faults.add("recipients", `must ask for at most ${MOST_CODES} codes in all, not ${count}.`);
  faults.end();
  return body;
}

/** Returns the members of a body that is not an order. */
export function readBody(kind: string, given: object): Members {
  const faults = new Faults();
  const body = readInputs(INPUTS[kind]!, checkObject(given, kind), faults, "body");
  faults.end();
  return body;
}

/** Returns a query as it is sent. */
export function readQuery(inputs: Inputs, given: object): Members {
  const faults = new Faults();
  const query = readInputs(inputs, given, faults, "query");
  faults.end();
  return query;
}

export function readReference(value: unknown): string {
  if (typeof value === "string" && REFERENCE.test(value)) return value;
  throw new InvalidArgument("reference", "must be an order's reference, letters and digits.");
}

export function readId(argument: string, value: unknown, most = INT32): number {
  const faults = new Faults();
  const found = readInput({ kind: "integer", least: 1, most }, value, faults, argument, "query");
  faults.end();
  return found as number;
}

export function readUuid(argument: string, value: unknown): string {
  if (typeof value === "string" && UUID.test(value)) return value;
  throw new InvalidArgument(argument, "must be a UUID.");
}

/** Returns an option of a client that is a number. Throws InvalidArgument if it is out of range. */
export function readSetting(name: string, given: unknown, least: number, most: number): number {
  if (typeof given === "number" && given >= least && given <= most) return given;
  throw new InvalidArgument(name, `must be from ${least} to ${most}, not ${String(given)}.`);
}

function checkObject(given: unknown, kind: string): object {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return given;
  throw new InvalidArgument(kind, "must be an object.");
}

function readInput(input: Input, value: unknown, faults: Faults, name: string, purpose: Purpose): unknown {
  if (input.kind.endsWith("[]")) return readList(input, value, faults, name, purpose);
  if (input.kind.endsWith("{}")) return readMap(input, value, faults, name, purpose);
  switch (input.kind) {
    case "integer":
      return readInteger(input, value, faults, name);
    case "amount":
      return readAmount(value, faults, name, purpose === "query");
    case "instant":
      return readInstant(value, faults, name);
    case "uuid":
      return typeof value === "string" && UUID.test(value) ? value : faults.add(name, "must be a UUID.");
    case "string":
      return readText(input, value, faults, name);
    case "boolean":
      return typeof value === "boolean" ? value : faults.add(name, `must be true or false, not ${said(value)}.`);
    case "any":
      return value;
    default:
      return readPart(input.kind, value, faults, name, purpose);
  }
}

function readList(input: Input, value: unknown, faults: Faults, name: string, purpose: Purpose): unknown {
  if (!Array.isArray(value)) return faults.add(name, `must be an array, not ${said(value)}.`);
  if (value.length < (input.fewest ?? 0)) return faults.add(name, "must not be empty.");
  if (value.length > (input.longest ?? Infinity)) return faults.add(name, `must have at most ${input.longest} items, not ${value.length}.`);
  const kind = input.kind.slice(0, -2);
  return value.map((one, at) => readInput({ kind }, one, faults, `${name}[${at}]`, purpose));
}

function readMap(input: Input, value: unknown, faults: Faults, name: string, purpose: Purpose): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return faults.add(name, `must be an object, not ${said(value)}.`);
  const nullable = input.kind.endsWith("?{}");
  const kind = input.kind.slice(0, nullable ? -3 : -2);
  const inputs = Object.fromEntries(Object.keys(value).map((key) => [key, { kind, nullable }]));
  return readInputs(inputs, value, faults, purpose, `${name}.`);
}

function readPart(kind: string, value: unknown, faults: Faults, name: string, purpose: Purpose): unknown {
  // Only an address means a recipient of one code.
  const part = kind === "Recipient" && typeof value === "string" ? { email: value } : value;
  if (typeof part !== "object" || part === null || Array.isArray(part)) {
    return faults.add(name, `must be ${kind === "Recipient" ? "an address or an object with `email`" : "an object"}, not ${said(part)}.`);
  }
  return readInputs(INPUTS[kind]!, part, faults, purpose, `${name}.`);
}

function readInteger(input: Input, value: unknown, faults: Faults, name: string): unknown {
  if (typeof value !== "number") return faults.add(name, `must be a number, not ${said(value)}.`);
  if (!Number.isSafeInteger(value)) return faults.add(name, `must be a whole number, not ${value}.`);
  const { least = 0, most = INT32 } = input;
  return value >= least && value <= most ? value : faults.add(name, `must be from ${least} to ${most}, not ${value}.`);
}

function readAmount(value: unknown, faults: Faults, name: string, isQuery: boolean): unknown {
  try {
    const amount = Decimal.of(value as AmountInput);
    if (amount.compare(0) > 0 || (isQuery && amount.equals(0))) return amount;
    return faults.add(name, `must be ${isQuery ? "at least" : "above"} 0, not ${amount}.`);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return faults.add(name, `must be exact. ${error.message}`);
  }
}

function readInstant(value: unknown, faults: Faults, name: string): unknown {
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? faults.add(name, "is no date.") : value.toISOString();
  }
  if (typeof value === "string" && INSTANT.test(value) && !Number.isNaN(Date.parse(value))) return value;
  return faults.add(name, 'must be a Date, or a text with an offset such as "2030-12-24T09:00:00Z".');
}

function readText(input: Input, value: unknown, faults: Faults, name: string): unknown {
  if (typeof value !== "string") return faults.add(name, `must be a string, not ${said(value)}.`);
  const length = [...value.trim()].length;
  if (!length) return faults.add(name, input.required ? "is required." : "is blank: leave it out.");
  if (length > (input.longest ?? Infinity)) return faults.add(name, `must have at most ${input.longest} characters, not ${length}.`);
  if (HALF_OF_A_PAIR.test(value)) return faults.add(name, "has half of a character: cut it as `[...text].slice(0, 32).join(\"\")` does.");
  if (input.pattern && !new RegExp(input.pattern).test(value)) return faults.add(name, `must match ${input.pattern}.`);
  return value;
}

function said(value: unknown): string {
  return Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
}
