import { createHmac, timingSafeEqual } from 'crypto';

const TOLERANCE_S = 300;

/** Returns whether a delivery was signed with the secret over this id, instant and body, at most five minutes ago (Standard Webhooks). */
export function isGenuine(body: Buffer, headers: { [name: string]: unknown }, secret: string, now = Date.now()): boolean {
  const [id, at, given] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name]);
  if (typeof id !== 'string' || typeof at !== 'string' || typeof given !== 'string' || !/^\d{1,11}$/.test(at)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signed = Buffer.concat([Buffer.from(`${id}.${at}.`), body]);
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  const matches = given.split(' ').map((one) => Buffer.from(one)).filter((one) => one.length === expected.length && timingSafeEqual(one, expected));
  return matches.length > 0 && Math.abs(now / 1000 - Number(at)) <= TOLERANCE_S;
}
