import {
  NodeConnectionTypes,
  type IDataObject,
  type IHookFunctions,
  type INodeType,
  type INodeTypeDescription,
  type IWebhookFunctions,
  type IWebhookResponseData,
} from 'n8n-workflow';
import { call, unsubscribe } from '../Largesse/transport';
import { isGenuine } from './signature';

interface Subscription {
  id: string;
  event: string | null;
  events?: string[];
  targetUrl: string;
  secret: string;
}

export class LargesseTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Largesse Trigger',
    name: 'largesseTrigger',
    icon: { light: 'file:../../icons/largesse.svg', dark: 'file:../../icons/largesse.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow when an order is placed, or a gift is claimed or bounces',
    defaults: { name: 'Largesse Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'largesseApi', required: true }],
    webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' }],
    properties: [
      {
        displayName: 'Events',
        name: 'events',
        type: 'multiOptions',
        required: true,
        default: ['order.created'],
        options: [
          { name: 'Gift Bounced', value: 'gift.bounced', description: "A gift's mail could not be delivered" },
          { name: 'Gift Claimed', value: 'gift.claimed', description: 'A recipient claimed a gift' },
          { name: 'Order Created', value: 'order.created', description: 'An order was placed' },
        ],
      },
    ],
    usableAsTool: undefined,
  };

  webhookMethods = {
    default: {
      /** The secret is shown only once: a subscription without it is no use. */
      async checkExists(this: IHookFunctions): Promise<boolean> {
        const { id, secret } = this.getWorkflowStaticData('node');
        if (!id || !secret) return false;
        const url = this.getNodeWebhookUrl('default');
        const wanted = JSON.stringify([...(this.getNodeParameter('events') as string[])].sort());
        const all = await call<Subscription[]>(this, 'GET', '/webhooks');
        return all.some((one) => one.id === id && one.targetUrl === url && JSON.stringify([...(one.events ?? [one.event])].sort()) === wanted);
      },
      async create(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData('node');
        if (typeof stored.id === 'string') await unsubscribe(this, stored.id);
        const body = { targetUrl: this.getNodeWebhookUrl('default'), events: this.getNodeParameter('events') as string[] };
        const made = await call<Subscription>(this, 'POST', '/webhooks', body);
        Object.assign(stored, { id: made.id, secret: made.secret });
        return true;
      },
      async delete(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData('node');
        if (typeof stored.id === 'string') await unsubscribe(this, stored.id);
        delete stored.id;
        delete stored.secret;
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData('node');
    const { rawBody, headers } = this.getRequestObject();
    if (typeof secret !== 'string' || !isGenuine(rawBody, headers, secret)) {
      this.getResponseObject().status(401).json({ message: 'The signature is not genuine' });
      return { noWebhookResponse: true };
    }
    return { workflowData: [this.helpers.returnJsonArray([JSON.parse(rawBody.toString()) as IDataObject])] };
  }
}
