import { Type } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { defineTool } from '../define.js'

export default defineTool({
  name: 'check-pce-credentials-status',
  summary: 'Whether you have PCE credentials.',
  effect: 'read',
  toolset: 'credentials',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: false,
  requiresConfirm: false,
  input: Type.Object({}, { additionalProperties: false }),
  output: Type.Object({
    registered: Type.Boolean({ description: 'Tools that need a PCE have credentials to use' }),
    mode: StringEnum(['stdio', 'insecure', 'shared', 'per_user'], {
      description: "per_user: callers have their own credentials; otherwise all share the server's",
    }),
    message: Type.Optional(Type.String()),
    pce_host: Type.Optional(Type.String({ description: 'Only for your own credentials, like the rest' })),
    pce_port: Type.Optional(Type.Integer({ description: 'Port' })),
    pce_org_id: Type.Optional(Type.Integer({ description: 'Organisation' })),
    tls_verify: Type.Optional(Type.Boolean({ description: 'Whether the certificate is checked' })),
    label: Type.Optional(Type.String({ description: 'Your name for them' })),
    last_check: Type.Optional(
      Type.Object(
        {
          at: Type.String({ description: 'UTC' }),
          ok: Type.Boolean({ description: 'The PCE accepted them' }),
          message: Type.Optional(Type.String({ description: 'Why not' })),
        },
        {
          description:
            'When the PCE was last tried with them: at registration, at the first call, by check-pce-connection',
        },
      ),
    ),
  }),
  example: {},
  async handler(_args, { credentials, caller }) {
    const { registered, message, facts, lastCheck } = await credentials.status()
    return {
      registered,
      mode: caller.mode,
      message,
      ...(facts !== undefined && {
        pce_host: facts.host,
        pce_port: facts.port,
        pce_org_id: facts.orgId,
        tls_verify: facts.tlsVerify,
        ...(facts.label !== undefined && { label: facts.label }),
      }),
      ...(lastCheck !== undefined && { last_check: { ...lastCheck, at: new Date(lastCheck.at).toISOString() } }),
    }
  },
})
