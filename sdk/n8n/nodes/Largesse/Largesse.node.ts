import {
  NodeApiError,
  NodeConnectionTypes,
  NodeOperationError,
  type IDataObject,
  type IExecuteFunctions,
  type ILoadOptionsFunctions,
  type INodeExecutionData,
  type INodePropertyOptions,
  type INodeType,
  type INodeTypeDescription,
  type JsonObject,
  tryToParseDateTime,
} from 'n8n-workflow';
import { properties } from './description';
import { call, exactAmount, listed, place, type Order } from './transport';

interface Listed {
  id: number;
  label?: string;
  name?: string | null;
}

export class Largesse implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Largesse',
    name: 'largesse',
    icon: { light: 'file:../../icons/largesse.svg', dark: 'file:../../icons/largesse.dark.svg' },
    group: ['output'],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: 'Send gifts and find orders',
    defaults: { name: 'Largesse' },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'largesseApi', required: true }],
    properties,
  };

  methods = {
    loadOptions: {
      async getProducts(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        const country = (this.getCurrentNodeParameter('country') as string) || 'GB';
        return options(await listed<Listed>(this, '/products', { country }, (passed, limit) => ({ page: passed / limit + 1 })));
      },
      async getTemplates(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return options(await listed<Listed>(this, '/templates', {}, (offset) => ({ offset })));
      },
      async getAccounts(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return options(await call<Listed[]>(this, 'GET', '/funding-accounts'));
      },
    },
  };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const found: INodeExecutionData[] = [];
    for (let item = 0; item < this.getInputData().length; item += 1) {
      try {
        for (const json of await run(this, item)) found.push({ json, pairedItem: { item } });
      } catch (error) {
        if (this.continueOnFail()) found.push({ json: { error: (error as Error).message }, pairedItem: { item } });
        else if (error instanceof NodeOperationError) throw new NodeOperationError(this.getNode(), error, { itemIndex: item });
        else throw new NodeApiError(this.getNode(), error as JsonObject, { itemIndex: item });
      }
    }
    return [found];
  }
}

async function run(functions: IExecuteFunctions, item: number): Promise<IDataObject[]> {
  const operation = functions.getNodeParameter('operation', item) as string;
  const externalReference = referenceOf(functions, item);
  if (operation === 'find') return await call<IDataObject[]>(functions, 'GET', '/orders', undefined, { externalReference });
  const order = read(functions, item, externalReference);
  if (operation === 'sendTemplate') {
    return [receipt(await place(functions, 'template', { templateId: Number(functions.getNodeParameter('templateId', item)), ...order }, item))];
  }
  const value = functions.getNodeParameter('value', item, '') as string;
  const gift = {
    productId: Number(functions.getNodeParameter('productId', item)),
    country: (functions.getNodeParameter('country', item, '') as string) || undefined,
    value: value ? exactAmount(functions, String(value), item) : undefined,
  };
  return [receipt(await place(functions, 'gift', { ...gift, ...order }, item))];
}

/** Returns the reference of an item as a text: ids are often numbers. Without one, a node that runs again would send again. */
function referenceOf(functions: IExecuteFunctions, itemIndex: number): string {
  const reference = written(functions.getNodeParameter('externalReference', itemIndex));
  if (reference !== undefined) return reference;
  throw new NodeOperationError(functions.getNode(), 'The item has no Reference: take it from what starts the workflow', { itemIndex });
}

/** Returns the members that both kinds of gift have. */
function read(functions: IExecuteFunctions, item: number, externalReference: string): Order {
  const { name, fromName, message, sendAt } = functions.getNodeParameter('additionalFields', item, {}) as IDataObject;
  const accountId = functions.getNodeParameter('accountId', item, '') as string | number;
  return {
    recipients: [{ email: functions.getNodeParameter('email', item) as string, name: written(name) }],
    accountId: accountId ? Number(accountId) : undefined,
    externalReference,
    fromName: written(fromName),
    message: written(message),
    sendAt: sendAt ? instant(functions, sendAt as string, item) : undefined,
    source: 'n8n',
  };
}

/** Returns a value as a text; undefined for one that is empty or blank, as two empty values with a space between are. */
function written(value: unknown): string | undefined {
  const text = value === undefined || value === null ? '' : String(value);
  return text.trim() ? text : undefined;
}

/** Returns an instant in UTC. n8n writes dates as the clock of the workflow's time zone shows them. */
function instant(functions: IExecuteFunctions, text: string, itemIndex: number): string {
  try {
    return new Date(tryToParseDateTime(text, functions.getTimezone()).toMillis()).toISOString();
  } catch {
    throw new NodeOperationError(functions.getNode(), `Send At must be a date, not "${text}"`, { itemIndex });
  }
}

/** Returns a placed order without the list of codes, which is empty for gifts that are mailed. */
function receipt(order: IDataObject): IDataObject {
  return Object.fromEntries(Object.entries(order).filter(([name]) => name !== 'codes'));
}

const options = (items: Listed[]): INodePropertyOptions[] => items.map(({ id, label, name }) => ({ name: label ?? name ?? String(id), value: id }));
