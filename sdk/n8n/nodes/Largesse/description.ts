import type { INodeProperties } from 'n8n-workflow';

const shown = (operation: string[]) => ({ displayOptions: { show: { resource: ['gift'], operation } } });
const sends = shown(['send', 'sendTemplate']);

export const properties: INodeProperties[] = [
  {
    displayName: 'Resource',
    name: 'resource',
    type: 'options',
    noDataExpression: true,
    options: [
      { name: 'Gift', value: 'gift' },
      { name: 'Order', value: 'order' },
    ],
    default: 'gift',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['gift'] } },
    options: [
      { name: 'Send', value: 'send', action: 'Send a gift', description: 'Send a product to a recipient by mail' },
      { name: 'Send From Template', value: 'sendTemplate', action: 'Send a gift from a template', description: 'Send a saved template by mail' },
    ],
    default: 'send',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['order'] } },
    options: [{ name: 'Find', value: 'find', action: 'Find an order', description: 'Find the order that has a reference of yours' }],
    default: 'find',
  },
  {
    displayName: 'Reference',
    name: 'externalReference',
    type: 'string',
    required: true,
    default: '',
    description: 'What makes this gift this one, taken from the item. A node that runs again with the same reference sends nothing more.',
  },
  {
    displayName: 'Product Name or ID',
    name: 'productId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getProducts', loadOptionsDependsOn: ['country'] },
    required: true,
    default: '',
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
    ...shown(['send']),
  },
  {
    displayName: 'Country',
    name: 'country',
    type: 'string',
    default: 'GB',
    description: "The two letters of the recipient's country",
    ...shown(['send']),
  },
  {
    displayName: 'Amount',
    name: 'value',
    type: 'string',
    default: '',
    placeholder: '12.50',
    description: 'In the currency of the product. Leave it empty if the product has only one amount.',
    ...shown(['send']),
  },
  {
    displayName: 'Template Name or ID',
    name: 'templateId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getTemplates' },
    required: true,
    default: '',
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
    ...shown(['sendTemplate']),
  },
  {
    displayName: 'Account Name or ID',
    name: 'accountId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getAccounts' },
    default: '',
    description:
      'Who pays; leave it empty if orders are invoiced. Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>.',
    ...sends,
  },
  {
    displayName: "Recipient's Email",
    name: 'email',
    type: 'string',
    placeholder: 'name@email.com',
    required: true,
    default: '',
    ...sends,
  },
  {
    displayName: 'Additional Fields',
    name: 'additionalFields',
    type: 'collection',
    placeholder: 'Add Field',
    default: {},
    options: [
      { displayName: 'From', name: 'fromName', type: 'string', default: '', description: 'At most 32 characters' },
      { displayName: 'Message', name: 'message', type: 'string', default: '', description: 'At most 256 characters' },
      { displayName: "Recipient's Name", name: 'name', type: 'string', default: '' },
      { displayName: 'Send At', name: 'sendAt', type: 'dateTime', default: '', description: 'When to send the gift; now if it is left out' },
    ],
    ...sends,
  },
];
