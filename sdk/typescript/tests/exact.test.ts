// Amounts and JSON without loss.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Decimal } from "largesse-client";
import { parse, stringify, type Json } from "#dist/json.js";

test("a decimal is exact", () => {
  assert.equal(Decimal.of("0.1").plus("0.2").toString(), "0.3");
  assert.equal(Decimal.of("10.0").minus("0.01").toString(), "9.99");
  assert.equal(Decimal.of("12.50").times(3).toString(), "37.50");
  assert.equal(Decimal.of("9007199254740993.001").plus(1).toString(), "9007199254740994.001");
  assert.equal(Decimal.of("-0.05").minus("0.95").toString(), "-1.00");
  assert.equal(Decimal.of("1e3").toString(), "1000");
  assert.equal(Decimal.of("12.5e-2").toString(), "0.125");
  assert.equal(Decimal.of(10n).toFixed(2), "10.00");
  assert.equal(Decimal.of("10.500").toFixed(1), "10.5");
  assert.equal(Decimal.of("-0.5").toFixed(3), "-0.500");
  assert.throws(() => Decimal.of("10.55").toFixed(1), RangeError);
  assert.ok(Decimal.of("10").equals("10.00") && !Decimal.of("10").equals("10.01"));
  const sorted = ["9.5", "10", "-1", "9.45"].map(Decimal.of).sort((one, other) => one.compare(other));
  assert.deepEqual(sorted.map(String), ["-1", "9.45", "9.5", "10"]);
  assert.equal(Decimal.of("10.1").toNumber(), 10.1);
});

test("a decimal is never rounded or compared by accident", () => {
  const [one, other] = [Decimal.of("9.0"), Decimal.of("10.0")];
  assert.throws(() => one < other, TypeError);
  // @ts-expect-error the types refuse it, too
  assert.throws(() => one + other, TypeError);
  assert.throws(() => +one, TypeError);
  assert.equal(`${one} GBP`, "9.0 GBP");
  assert.equal(JSON.stringify({ one }), '{"one":"9.0"}');
  assert.equal(inspect(one), "Decimal(9.0)");
  for (const wrong of [0.1, NaN, Infinity, 2 ** 53, "", "1,5", "1.", ".5", "0x10", "1e99999", "9".repeat(2_000), null, {}]) {
    assert.throws(() => Decimal.of(wrong as string), RangeError, String(wrong));
  }
});

test("JSON keeps every digit", () => {
  const text = '{"a":[10.0,0.1,1e2,9007199254740993,-0.0,7,-7,0],"b":"\\u00e9\\"\\\\","c":null,"d":true,"e":false,"f":{},"g":[]}';
  assert.equal(JSON.stringify(parse(text)), '{"a":["10.0","0.1","100","9007199254740993","0.0",7,-7,0],"b":"é\\"\\\\","c":null,"d":true,"e":false,"f":{},"g":[]}');
  assert.equal(stringify({ value: Decimal.of("0.10"), names: ["é", Decimal.of(3)], none: undefined, empty: null }), '{"value":0.10,"names":["é",3],"empty":null}');
  assert.equal(stringify({ at: new Date(0) }), '{"at":"1970-01-01T00:00:00.000Z"}');
});

/** Returns what JSON.parse gives, but with numbers as texts of their digits. */
function plain(value: Json): unknown {
  if (value instanceof Decimal) return Number(value.toString());
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
  return value;
}

test("JSON is read as JSON.parse reads it, and refused where it refuses", () => {
  const good = [
    "1", " [1 , 2 ] ", '"\\n\\u0041"', "-0", "1E+2", '{"a":{"b":[{}]}}', '{"a":1,"a":2}', '{"":0}', "\t\r\n true ", '["\\\\","\\\\\\""]', '"\u2028"',
  ];
  for (const text of good) assert.deepEqual(plain(parse(text)), plain(JSON.parse(text) as Json), text);
  const wrong = [
    "", " ", "{", "[", "[1,]", '{"a":1,}', "{a:1}", "'a'", "01", "1.", ".1", "+1", "1e", "--1", "nul", "truee", '"', '"\\', '"\\x"', '"\n"', "[1 2]",
    '{"a" 1}', "1 2", "NaN", "Infinity", "undefined", '{"a":}', "[,1]", "\u00a01", "{}}", '"\\u12"', "/**/1",
  ];
  for (const text of wrong) {
    assert.throws(() => JSON.parse(text), SyntaxError, text);
    assert.throws(() => parse(text), SyntaxError, text);
  }
  assert.throws(() => parse("[".repeat(100_000)), SyntaxError);
});
