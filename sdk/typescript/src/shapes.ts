// Reads answers by their shape: checks that each member has the type of the document, turns amounts into Decimals, and keeps unknown members.

import { Decimal } from "./decimal.js";
import { SHAPES } from "./generated/tables.js";
import type { Json } from "./json.js";

/** The answer does not have the shape of the document. */
export class ShapeError extends Error {}

type Read = (value: Json | undefined, where: string) => unknown;

const SECRET = new Set(["IssuedCode", "NewSubscription", "RotatedSecret"]);
const INSPECT = Symbol.for("nodejs.util.inspect.custom");
const readers = new Map<string, Read>();

/** Returns a function that reads a value of a kind of SHAPES. The function throws ShapeError. */
export function reader(kind: string): Read {
  let read = readers.get(kind);
  if (!read) {
    // Set first, as a shape may contain itself.
    readers.set(kind, (value, where) => reader(kind)(value, where));
    read = made(kind);
    readers.set(kind, read);
  }
  return read;
}

function made(kind: string): Read {
  if (kind.endsWith("?")) {
    const inner = reader(kind.slice(0, -1));
    return (value, where) => (value === null ? null : inner(value, where));
  }
  if (kind.endsWith("[]")) return list(reader(kind.slice(0, -2)));
  if (kind.endsWith("{}")) return record(reader(kind.slice(0, -2)));
  switch (kind) {
    case "any":
      return (value) => value;
    case "amount":
      return (value, where) => (typeof value === "number" || value instanceof Decimal ? Decimal.of(value) : wrong(value, where, "an amount"));
    case "integer":
      return (value, where) => (typeof value === "number" ? value : wrong(value, where, "an integer that is exact here"));
    case "string":
      return (value, where) => (typeof value === "string" ? value : wrong(value, where, "a string"));
    case "boolean":
      return (value, where) => (typeof value === "boolean" ? value : wrong(value, where, "true or false"));
    default:
      return struct(kind);
  }
}

function list(read: Read): Read {
  return (value, where) => {
    if (!Array.isArray(value)) return wrong(value, where, "an array");
    return value.map((item, at) => read(item, `${where}[${at}]`));
  };
}

function record(read: Read): Read {
  return (value, where) => {
    if (!isObject(value)) return wrong(value, where, "an object");
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, read(member, `${where}.${name}`)]));
  };
}

function struct(name: string): Read {
  const shape = (SHAPES as Readonly<Record<string, Readonly<Record<string, string>>>>)[name]!;
  const members = Object.entries(shape).map(([member, kind]) => {
    const isOptional = kind.startsWith("?");
    return [member, isOptional, reader(isOptional ? kind.slice(1) : kind)] as const;
  });
  return (value, where) => {
    if (!isObject(value)) return wrong(value, where, "an object");
    for (const [member, isOptional, read] of members) {
      const given = value[member];
      if (given !== undefined) value[member] = read(given, where ? `${where}.${member}` : member) as Json;
      else if (!isOptional) throw new ShapeError(`\`${where ? `${where}.` : ""}${member}\` is missing.`);
    }
    // So that a program's logs do not show codes or secrets by accident.
    if (SECRET.has(name)) Object.defineProperty(value, INSPECT, { value: () => `${name} {…}`, enumerable: false });
    return value;
  };
}

function isObject(value: unknown): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Decimal);
}

function wrong(value: unknown, where: string, wanted: string): never {
  const found = value === null ? "null" : Array.isArray(value) ? "an array" : value instanceof Decimal ? "a number" : typeof value;
  throw new ShapeError(`${where ? `\`${where}\`` : "it"} must be ${wanted}, not ${found}.`);
}
