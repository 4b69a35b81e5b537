import { Type } from '@sinclair/typebox'
import { defineTool } from '../define.js'

export default defineTool({
  name: 'register-pce-credentials',
  summary: 'Store your PCE API key. Better: /setup in a browser, unseen by models.',
  effect: 'write',
  scope: 'own',
  toolset: 'credentials',
  idempotent: true,
  roles: ['reader', 'operator', 'admin'],
  requiresPce: false,
  requiresConfirm: false,
  input: Type.Object(
    {
      pce_host: Type.String({ description: 'Host or IP', listed: '' }),
      pce_port: Type.Integer({ description: 'Port' }),
      pce_org_id: Type.Integer({ description: 'Organisation', listed: '' }),
      api_key: Type.String({ description: 'Key' }),
      api_secret: Type.String({ description: 'Secret' }),
      tls_verify: Type.Optional(Type.Boolean({ description: 'Default true' })),
      label: Type.Optional(Type.String({ description: 'Name', listed: '' })),
      replace_anyway: Type.Optional(Type.Boolean({ description: 'Even if refused' })),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    status: Type.Literal('ok', { description: 'The credentials are stored' }),
    message: Type.String(),
    pce_host: Type.String({ description: 'As stored' }),
    pce_port: Type.Integer({ description: 'As stored' }),
    pce_org_id: Type.Integer({ description: 'As stored' }),
    label: Type.Optional(Type.String({ description: 'As stored' })),
    connection: Type.Object(
      {
        ok: Type.Boolean({ description: 'The PCE answered and accepts the credentials' }),
        error: Type.Optional(
          Type.Object(
            { code: Type.String({ description: 'pce_error or pce_unreachable' }), message: Type.String() },
            { description: 'Why not' },
          ),
        ),
      },
      { description: 'Result of trying them' },
    ),
  }),
  example: {
    pce_host: 'pce.example.com',
    pce_port: 8443,
    pce_org_id: 1,
    api_key: 'api_1f2e3d4c5b6a79881',
    api_secret: 'the-secret-the-pce-showed-once',
  },
  async handler(args, { credentials }) {
    const given = {
      host: args.pce_host,
      port: args.pce_port,
      orgId: args.pce_org_id,
      apiKey: args.api_key,
      apiSecret: args.api_secret,
      tlsVerify: args.tls_verify ?? true,
      ...(args.label !== undefined && { label: args.label }),
    }
    const { facts, connection } = await credentials.register(given, { replaceAnyway: args.replace_anyway ?? false })
    const { host, port, orgId, label } = facts
    const outcome = connection.ok
      ? 'the PCE accepts them'
      : `but they could not be used yet: ${connection.error?.message ?? 'the PCE did not answer.'}`
    return {
      status: 'ok' as const,
      message: `Your PCE credentials are stored, ${outcome}${connection.ok ? '.' : ''}`,
      pce_host: host,
      pce_port: port,
      pce_org_id: orgId,
      ...(label !== undefined && { label }),
      connection,
    }
  },
})
