import type { IAuthenticateGeneric, ICredentialTestRequest, ICredentialType, INodeProperties } from 'n8n-workflow';

export class LargesseApi implements ICredentialType {
  name = 'largesseApi';

  displayName = 'Largesse API';

  icon = { light: 'file:../icons/largesse.svg', dark: 'file:../icons/largesse.dark.svg' } as const;

  properties: INodeProperties[] = [
    {
      displayName: 'Address',
      name: 'baseUrl',
      type: 'string',
      required: true,
      default: '',
      placeholder: 'https://gifts.example.com',
      description: 'The address of your Largesse',
    },
    { displayName: 'API Key', name: 'apiKey', type: 'string', typeOptions: { password: true }, required: true, default: '' },
  ];

  authenticate: IAuthenticateGeneric = {
    type: 'generic',
    properties: { headers: { Authorization: '=Bearer {{$credentials.apiKey}}' } },
  };

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.baseUrl}}', url: '/me' },
  };
}
