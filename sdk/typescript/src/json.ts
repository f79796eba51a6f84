// JSON without loss. JSON.parse reads 10.1 as the nearest binary fraction and rounds large integers; here every number that a
// JavaScript number may not hold exactly becomes a Decimal with all its digits.

import { Decimal } from "./decimal.js";

const DEEPEST = 64;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;

/** A value of JSON. Integers that a number holds exactly are numbers, all other numbers are Decimals. */
export type Json = null | boolean | number | string | Decimal | Json[] | { [name: string]: Json };

/** Reads JSON. Throws a SyntaxError. */
export function parse(text: string): Json {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** Writes JSON, a Decimal as a number with all its digits. Members that are undefined are left out. */
export function stringify(value: unknown): string {
  if (value instanceof Decimal) return value.toString();
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    const given = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${given.map(([name, member]) => `${JSON.stringify(name)}:${stringify(member)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  value(depth: number): Json {
    this.#space();
    switch (this.text[this.#at]) {
      case "{":
        return this.#object(depth + 1);
      case "[":
        return this.#array(depth + 1);
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  end(): void {
    this.#space();
    if (this.#at < this.text.length) this.#fail();
  }

  #object(depth: number): Json {
    const members: { [name: string]: Json } = {};
    if (this.#opens("}", depth)) return members;
    do {
      this.#space();
      if (this.text[this.#at] !== '"') this.#fail();
      const name = this.#string();
      this.#space();
      if (this.text[this.#at] !== ":") this.#fail();
      this.#at += 1;
      const value = this.value(depth);
      // An assignment to this name would set the object's prototype.
      if (name === "__proto__") Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
      else members[name] = value;
    } while (this.#goesOn("}"));
    return members;
  }

  #array(depth: number): Json {
    const items: Json[] = [];
    if (this.#opens("]", depth)) return items;
    do items.push(this.value(depth));
    while (this.#goesOn("]"));
    return items;
  }

  /** Passes the opening bracket, and the closing one if nothing is between them. */
  #opens(closing: string, depth: number): boolean {
    if (depth > DEEPEST) throw new SyntaxError(`JSON is nested deeper than ${DEEPEST} levels.`);
    this.#at += 1;
    this.#space();
    if (this.text[this.#at] !== closing) return false;
    this.#at += 1;
    return true;
  }

  #goesOn(closing: string): boolean {
    this.#space();
    const next = this.text[this.#at];
    if (next !== "," && next !== closing) this.#fail();
    this.#at += 1;
    return next === ",";
  }

  #string(): string {
    const begin = this.#at;
    let end = begin;
    do {
      end = this.text.indexOf('"', end + 1);
      if (end < 0) this.#fail();
    } while (this.#isEscaped(end));
    this.#at = end + 1;
    // JSON.parse knows the escapes, and refuses control characters.
    return JSON.parse(this.text.slice(begin, end + 1)) as string;
  }

  #isEscaped(at: number): boolean {
    let slashes = 0;
    while (this.text[at - 1 - slashes] === "\\") slashes += 1;
    return slashes % 2 === 1;
  }

  #number(): number | Decimal {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.text);
    if (!found) return this.#fail();
    this.#at = NUMBER.lastIndex;
    const [digits, fraction, exponent] = found;
    if (fraction === undefined && exponent === undefined) {
      const whole = Number(digits);
      if (Number.isSafeInteger(whole)) return whole;
    }
    try {
      return Decimal.of(digits);
    } catch (error) {
      throw new SyntaxError((error as Error).message);
    }
  }

  #word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.#at)) this.#fail();
    this.#at += word.length;
    return value;
  }

  #space(): void {
    const next = this.text.charCodeAt(this.#at);
    if (next > 32) return;
    SPACE.lastIndex = this.#at;
    SPACE.exec(this.text);
    this.#at = SPACE.lastIndex;
  }

  #fail(): never {
    const found = this.text[this.#at];
    throw new SyntaxError(found === undefined ? "The JSON ends too early." : `Unexpected ${JSON.stringify(found)} at ${this.#at} of the JSON.`);
  }
}
