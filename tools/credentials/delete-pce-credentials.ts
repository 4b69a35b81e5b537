import { Type } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { defineTool } from '../define.js'

export default defineTool({
  name: 'delete-pce-credentials',
  summary: 'Delete your PCE credentials here.',
  effect: 'destroy',
  scope: 'own',
  toolset: 'credentials',
  idempotent: true,
  roles: ['reader', 'operator', 'admin'],
  requiresPce: false,
  requiresConfirm: false,
  input: Type.Object({}, { additionalProperties: false }),
  output: Type.Object({
    status: StringEnum(['ok', 'noop'], { description: 'noop: there were none' }),
    message: Type.String(),
  }),
  example: {},
  async handler(_args, { credentials }) {
    return (await credentials.remove())
      ? { status: 'ok' as const, message: 'Your PCE credentials are deleted. Revoke the API key at the PCE as well.' }
      : { status: 'noop' as const, message: 'You had no PCE credentials here.' }
  },
})
