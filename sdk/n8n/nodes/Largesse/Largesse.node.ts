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
} from 'n8n-workflow';
import { properties } from './description';
import { call, exactAmount, place, type Order } from './transport';

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
        return options(await call<Listed[]>(this, 'GET', '/products', undefined, { country, limit: 200 }));
      },
      async getTemplates(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return options(await call<Listed[]>(this, 'GET', '/templates', undefined, { limit: 200 }));
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
  const externalReference = functions.getNodeParameter('externalReference', item) as string;
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

/** Returns the members that both kinds of gift have. */
function read(functions: IExecuteFunctions, item: number, externalReference: string): Order {
  const { name, fromName, message, sendAt } = functions.getNodeParameter('additionalFields', item, {}) as { [name: string]: string };
  const accountId = functions.getNodeParameter('accountId', item, '') as string | number;
  return {
    recipients: [{ email: functions.getNodeParameter('email', item) as string, name: name || undefined }],
    accountId: accountId ? Number(accountId) : undefined,
    externalReference,
    fromName: fromName || undefined,
    message: message || undefined,
    sendAt: sendAt ? new Date(sendAt).toISOString() : undefined,
    source: 'n8n',
  };
}

/** Returns a placed order without the list of codes, which is empty for gifts that are mailed. */
function receipt(order: IDataObject): IDataObject {
  return Object.fromEntries(Object.entries(order).filter(([name]) => name !== 'codes'));
}

const options = (items: Listed[]): INodePropertyOptions[] => items.map(({ id, label, name }) => ({ name: label ?? name ?? String(id), value: id }));
