/**
 * Guardrails at both moments: each of them is set after a call was shown and confirmed, by a restart of the server with
 * other settings, and before it is repeated. The gate refuses, no token is used, and nothing is written.
 */
import t from 'tap'
import type { SharedConfig } from '../../schemas/config.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'
import { startService } from '../contract/authenticated-service.js'
import { estate, PROTECTED, windows } from './guarded-service.js'

const MODES = 'set-enforcement-mode'
const ARGS = { workloads: ['dc1', 'web1'], enforcement_mode: 'full' }
const NOW = Date.parse('2026-11-27T18:00:00Z')

t.test('set between the preview and the redemption', async (t) => {
  const options = { mode: 'shared', now: () => NOW } as const
  const first = await startService(t, {
    ...options,
    config: { guardrails: { maxWorkloads: 2 }, offer: { toolsets: ['all'] } },
    estate: { estate: estate() },
  })
  const { pce, oauth, database } = first.config as SharedConfig
  const restart = (guardrails: GuardrailsConfig) =>
    startService(t, {
      ...options,
      folder: first.folder,
      config: { pce, oauth, guardrails, offer: { toolsets: ['all'] }, ...(database && { database }) },
    })
  const written = () => first.pce.simulator.requests.filter(({ method }) => method === 'PUT').length
  const token = await first.tokenOf('ann')
  const asked = await first.call(token, MODES, ARGS)
  t.equal(asked.error, 'confirm_required')
  t.same(asked.guardrails, [
    {
      guardrail: 'too_many_workloads',
      message: 'This affects 2 workloads; at most 2 may be affected at a time.',
      needs_two_persons: false,
      workloads_affected: 2,
      max_workloads_affected: 2,
    },
  ])
  const { confirm_token: confirmed } = (await first.confirm(token, asked.confirm.body)).json() as {
    confirm_token: string
  }
  for (const [code, guardrails] of [
    ['protected', PROTECTED],
    ['too_many_workloads', { maxWorkloads: 1 }],
    ['frozen', { freezes: windows('Fri 18:00 - Mon 06:00 Europe/Berlin') }],
  ] as const) {
    const later = await restart(guardrails)
    const answer = await later.call(token, MODES, ARGS, { confirm_token: confirmed })
    t.equal(answer.error, code)
    const { phase, decision, reason, confirm_jti: jti } = later.audit.at(-1)!
    t.same([phase, decision, reason, jti], ['decision', 'denied', code, undefined], 'before the confirmation')
    t.equal(written(), 0)
  }
  const again = await restart({ maxWorkloads: 2 })
  t.equal((await again.call(token, MODES, ARGS, { confirm_token: confirmed })).error, undefined, 'the token is unused')
  t.equal(written(), 1)
})
