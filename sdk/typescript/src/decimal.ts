// Exact amounts. A number of JavaScript cannot hold 0.1, so amounts are never numbers.

const PATTERN = /^([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;
const MOST_DIGITS = 1_000;

/** The types of an amount: a Decimal, a text such as "12.50", or a whole number. */
export type AmountInput = Decimal | string | number | bigint;

/** An exact decimal number, such as an amount in major units. It never changes. */
export class Decimal {
  readonly #digits: bigint;
  readonly #places: number;

  private constructor(digits: bigint, places: number) {
    this.#digits = digits;
    this.#places = places;
  }

  /** Returns the exact value of a text, whole number or Decimal. Throws a RangeError for anything else, such as the number 12.5. */
  static of(value: AmountInput): Decimal {
    if (value instanceof Decimal) return value;
    if (typeof value === "bigint") return new Decimal(value, 0);
    if (typeof value === "number") {
      if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not an exact amount: write it as a text, "${value}".`);
      return new Decimal(BigInt(value), 0);
    }
    const found = typeof value === "string" ? PATTERN.exec(value) : null;
    if (!found) throw new RangeError("An amount is a Decimal, a whole number, or a text such as \"12.50\".");
    const [, sign = "", whole = "", fraction = "", exponent = "0"] = found;
    const places = fraction.length - Number(exponent);
    if (whole.length + fraction.length > MOST_DIGITS || Math.abs(places) > MOST_DIGITS) {
      throw new RangeError(`An amount has at most ${MOST_DIGITS} digits.`);
    }
    const digits = BigInt(`${whole}${fraction}`) * (sign === "-" ? -1n : 1n);
    return places < 0 ? new Decimal(digits * 10n ** BigInt(-places), 0) : new Decimal(digits, places);
  }

  plus(other: AmountInput): Decimal {
    const [ours, theirs, places] = this.#aligned(Decimal.of(other));
    return new Decimal(ours + theirs, places);
  }

  minus(other: AmountInput): Decimal {
    const [ours, theirs, places] = this.#aligned(Decimal.of(other));
    return new Decimal(ours - theirs, places);
  }

  times(other: AmountInput): Decimal {
    const factor = Decimal.of(other);
    return new Decimal(this.#digits * factor.#digits, this.#places + factor.#places);
  }

  /** Returns -1, 0 or 1, as `sort` needs it. */
  compare(other: AmountInput): -1 | 0 | 1 {
    const [ours, theirs] = this.#aligned(Decimal.of(other));
    return ours < theirs ? -1 : ours > theirs ? 1 : 0;
  }

  /** Returns whether both are the same number: 10 equals 10.00. */
  equals(other: AmountInput): boolean {
    return this.compare(other) === 0;
  }

  /** Returns the text with that many decimal places. Throws a RangeError if it would have to be rounded. */
  toFixed(places: number): string {
    if (!Number.isInteger(places) || places < 0 || places > MOST_DIGITS) throw new RangeError("`places` must be from 0 to 1000.");
    if (places >= this.#places) return text(this.#digits * 10n ** BigInt(places - this.#places), places);
    const step = 10n ** BigInt(this.#places - places);
    if (this.#digits % step !== 0n) throw new RangeError(`${this} has more than ${places} decimal places.`);
    return text(this.#digits / step, places);
  }

  /** Returns the nearest number, which may not be exact: for charts, not for money. */
  toNumber(): number {
    return Number(this.toString());
  }

  /** Returns the digits as they were given: "10.0". */
  toString(): string {
    return text(this.#digits, this.#places);
  }

  /** In JSON it is a text, which keeps every digit. */
  toJSON(): string {
    return this.toString();
  }

  /** `a < b` and `a + b` would compare texts or round: they throw. Templates such as `${a}` work. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") return this.toString();
    throw new TypeError("A Decimal is calculated and compared with its methods: plus, minus, times, compare, equals.");
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Decimal(${this})`;
  }

  #aligned(other: Decimal): [bigint, bigint, number] {
    const places = Math.max(this.#places, other.#places);
    const raised = (one: Decimal) => (one.#places === places ? one.#digits : one.#digits * 10n ** BigInt(places - one.#places));
    return [raised(this), raised(other), places];
  }
}

function text(digits: bigint, places: number): string {
  if (places === 0) return digits.toString();
  const sign = digits < 0n ? "-" : "";
  const all = (digits < 0n ? -digits : digits).toString().padStart(places + 1, "0");
  return `${sign}${all.slice(0, -places)}.${all.slice(-places)}`;
}
