import {
  type IDataObject,
  type IExecuteFunctions,
  type IHookFunctions,
  type IHttpRequestMethods,
  type ILoadOptionsFunctions,
  NodeApiError,
  NodeOperationError,
} from 'n8n-workflow';

type Functions = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions;

interface Response {
  statusCode: number;
  body: unknown;
}

/** Sends a request, and returns the response whatever its status. */
async function send(functions: Functions, method: IHttpRequestMethods, url: string, body?: IDataObject, qs?: IDataObject): Promise<Response> {
  const { baseUrl } = await functions.getCredentials<{ baseUrl: string }>('largesseApi');
  return (await functions.helpers.httpRequestWithAuthentication.call(functions, 'largesseApi', {
    method,
    baseURL: baseUrl.replace(/\/+$/, ''),
    url,
    body,
    qs,
    json: true,
    ignoreHttpStatusErrors: true,
    returnFullResponse: true,
  })) as Response;
}

/** Returns the body of a good response. Throws a NodeApiError with the problem's detail for any other. */
export async function call<T>(functions: Functions, method: IHttpRequestMethods, url: string, body?: IDataObject, qs?: IDataObject): Promise<T> {
  const response = await send(functions, method, url, body, qs);
  if (response.statusCode < 300) return response.body as T;
  throw refusal(functions, response);
}

const PAGE = 200;

/** Returns a list with all its pages; `next` returns how the page after so many items is asked for. */
export async function listed<T>(functions: Functions, url: string, qs: IDataObject, next: (passed: number, limit: number) => IDataObject): Promise<T[]> {
  const found: T[] = [];
  for (;;) {
    const page = await call<T[]>(functions, 'GET', url, undefined, { ...qs, limit: PAGE, ...next(found.length, PAGE) });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}

function refusal(functions: Functions, { statusCode, body }: Response): NodeApiError {
  const problem = (typeof body === 'object' && body !== null ? body : {}) as { detail?: string; type?: string };
  const message = problem.detail ?? `The response has the status ${statusCode}`;
  return new NodeApiError(functions.getNode(), { message, ...problem } as never, { message, description: problem.type, httpCode: String(statusCode) });
}

/** Ends a subscription, which may have ended already. */
export async function unsubscribe(functions: IHookFunctions, id: string): Promise<void> {
  const response = await send(functions, 'DELETE', `/webhooks/${id}`);
  if (response.statusCode >= 300 && response.statusCode !== 404) throw refusal(functions, response);
}

export interface Order extends IDataObject {
  recipients: Array<{ email: string; name?: string }>;
  externalReference: string;
}

/** Places an order. If its reference is used, returns the order that holds it where that is the same, and throws where it is another. */
export async function place(functions: IExecuteFunctions, kind: 'gift' | 'template', order: Order, itemIndex: number): Promise<IDataObject> {
  const response = await send(functions, 'POST', `/send/${kind}`, order);
  const { type, instance } = (response.body ?? {}) as { type?: string; instance?: string };
  if (response.statusCode !== 409 || type !== '/problems/reference-used' || !instance) {
    if (response.statusCode >= 300) throw refusal(functions, response);
    return response.body as IDataObject;
  }
  const request = await call<IDataObject>(functions, 'GET', `${instance}/request`);
  const found = differences(kind, order, request);
  if (!found.length) return await call<IDataObject>(functions, 'GET', instance);
  const message = `The reference belongs to another order, which differs in ${found.join(', ')}: nothing was sent`;
  throw new NodeOperationError(functions.getNode(), message, { itemIndex });
}

// What a template fills in where a node leaves it out.
const OF_TEMPLATE = new Set(['value', 'country', 'productId', 'fromName', 'message']);
const COMPARED = ['productId', 'templateId', 'value', 'country', 'accountId', 'fromName', 'message', 'sendAt'] as const;

function differences(kind: 'gift' | 'template', order: Order, request: IDataObject): string[] {
  const found = request.isOwn === true ? [] : ['service account'];
  const implied: IDataObject = { value: request.value, country: 'GB' };
  for (const name of COMPARED) {
    if (kind === 'template' && OF_TEMPLATE.has(name) && order[name] === undefined) continue;
    if (comparable(name, order[name] ?? implied[name]) !== comparable(name, request[name])) found.push(name);
  }
  if (!areSame(order.recipients, request.recipients as Requested[])) found.push('recipients');
  return found;
}

function comparable(name: string, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (name === 'sendAt') return Date.parse(value as string);
  return name === 'country' ? (value as string).toUpperCase() : value;
}

interface Requested {
  email: string;
  name: string | null;
  wasEmail?: string | null;
}

/** Returns whether both name the same recipients. An address that people corrected is compared with the former one, which is masked. */
function areSame(given: Order['recipients'], requested: Requested[]): boolean {
  const same = given.map(({ email, name }, index) => {
    const other = requested[index];
    const wanted = spelled(email);
    const mask = `${[...wanted][0] ?? ''}•••@${wanted.slice(wanted.lastIndexOf('@') + 1)}`;
    return other && (name ?? null) === other.name && (wanted === spelled(other.email) || mask === spelled(other.wasEmail ?? ''));
  });
  return given.length === requested.length && same.every(Boolean);
}

/** Returns what the spellings of an address share: letter case, composed characters, and domains in ASCII or not. */
function spelled(email: string): string {
  const [, local = '', domain = ''] = /^(.*@)?([^@]*)$/.exec(email.trim()) ?? [];
  let ascii = domain;
  try {
    ascii = new URL(`http://${domain}`).hostname;
  } catch {
    // No domain that an address may have: it stays as it is.
  }
  return `${local}${ascii}`.normalize('NFC').toLowerCase();
}

/** Returns an amount that a number holds exactly: at most ten digits before the point and four after it. */
export function exactAmount(functions: IExecuteFunctions, text: string, itemIndex: number): number {
  if (/^\d{1,10}(\.\d{1,4})?$/.test(text.trim())) return Number(text);
  throw new NodeOperationError(functions.getNode(), 'The amount must be a number such as 12.50', { itemIndex });
}
