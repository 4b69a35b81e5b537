/** A service whose people are revoked by the operator's command on the same file, as a second process does it. */
import { renameSync, writeFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import type { Test } from 'tap'
import { startService, type Json, type ServiceOptions } from '../contract/authenticated-service.js'
import { revokeUser, type RevokeOptions } from '../../programs/composition/revoke-user.js'
import type { CommandReport } from '../../programs/composition/command-report.js'
import type { StateFileConfig } from '../../schemas/config.js'
import { defineTool } from '../../tools/define.js'

/** A tool that writes twice, and between the two waits for the test. */
export function pausingTool() {
  let calls = 0
  const gate = { reached: () => {}, go: Promise.resolve() }
  const tool = defineTool({
    name: 'update-label',
    summary: 'Creates two labels, and waits between them.',
    effect: 'write',
    scope: 'everything',
    toolset: 'objects',
    roles: ['operator', 'admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: Type.Object({}),
    output: Type.Object({}),
    example: {},
    async handler(_args, { pce }) {
      const number = ++calls
      await pce.post('/labels', { json: { key: 'role', value: `first ${number}` } })
      gate.reached()
      await gate.go
      await pce.post('/labels', { json: { key: 'role', value: `second ${number}` } })
      return {}
    },
  })
  return { tool, gate }
}

export async function startRevocable(t: Test, options: ServiceOptions = {}) {
  const service = await startService(t, { mode: 'shared', config: { offer: { toolsets: ['all'] } }, ...options })
  const { config, oauth, pce } = service
  const state: StateFileConfig =
    config.mode === 'shared'
      ? { mode: 'shared', path: config.statePath, variable: 'MCP_STATE_PATH', issuer: oauth.issuer }
      : { mode: 'per_user', path: config.keystore.path, variable: 'MCP_KEYSTORE_PATH', issuer: oauth.issuer }
  if (config.database !== undefined) state.database = config.database
  return {
    ...service,
    state,
    /** Runs the command; the report. */
    revoke: (sub: string, more: RevokeOptions = {}, iss = oauth.issuer): Promise<CommandReport> =>
      revokeUser(state, { iss, sub }, more, {
        openAudit: () => null,
        osUser: 'ops',
        ...(options.now && { now: options.now }),
      }),
    /** Puts another file where the state was, which the server notices as it would notice a failing disk. */
    breakStore: () => {
      const { path } = state
      renameSync(path, `${path}.away`)
      writeFileSync(path, '')
    },
    /** The labels that calls have created, by value. */
    created: () =>
      pce.simulator.requests.flatMap(({ method, path, body }) =>
        method === 'POST' && path.endsWith('/labels') ? [(body as Json).value as string] : [],
      ),
  }
}
