import { Type } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import type { Label } from '../../schemas/pce/label.js'
import { RingfenceOutput } from '../../schemas/ringfence.js'
import { ServicesInput } from '../../schemas/rule-shapes.js'
import { defineTool } from '../define.js'
import { Reading } from '../../domain/traffic/read-flows.js'
import { lookbackDays } from '../../domain/traffic/traffic-window.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { prepareRingfence, DENY_CONSUMERS } from '../../domain/ringfence/prepare-ringfence.js'
import { reportRising, shareReads } from '../../domain/ringfence/share-reads.js'
import { showRingfence } from '../answers/ringfence/show-ringfence.js'
import { writePrepared } from '../../domain/ringfence/write-ringfence.js'
import { Truncation } from '../answers/byte-budget.js'

const DEFAULT_DAYS = 30

export default defineTool({
  name: 'create-ringfence',
  area: 'ringfence',
  summary:
    'Write the draft ringfence of an application from its traffic: allow inside and from each source application; selective denies the rest. Says who would be cut: dry_run first.',
  effect: 'write',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      app_name: Type.String({ minLength: 1, description: 'app label or value' }),
      env_name: Type.String({ minLength: 1, description: 'env label or value' }),
      lookback_days: lookbackDays(DEFAULT_DAYS),
      ruleset_name: Type.Optional(NewName('Default RF-<app>-<env>')),
      selective: Type.Optional(Type.Boolean({ default: false, description: 'Also deny all other inbound' })),
      skip_allowed: Type.Optional(Type.Boolean({ default: false, description: 'No rule where all is allowed' })),
      deny_service: Type.Optional(ServicesInput('{port, proto, to_port?}, {service} or {href}; default All Services')),
      deny_consumer: Type.Optional(
        StringEnum(DENY_CONSUMERS, { default: 'any', description: 'Any address, workloads, both' }),
      ),
      detail_level: Type.Optional(
        StringEnum(['standard', 'full'] as const, { default: 'standard', description: 'Rows per list' }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: Type.Object({ ...RingfenceOutput, ...Reading, ...Truncation }),
  example: { app_name: 'payments', env_name: 'prod', dry_run: true },
  async handler({ app_name: app, env_name: env, ...args }, outer) {
    const {
      lookback_days: days = DEFAULT_DAYS,
      dry_run: dryRun = false,
      detail_level: detail = 'standard',
      ...options
    } = args
    if (options.ruleset_name !== undefined) refuseHidden({ ruleset_name: options.ruleset_name })
    const ctx = reportRising(outer)
    const { pce, limits } = ctx
    // Reading takes minutes; a call that is cancelled meanwhile must write nothing.
    const planning = { ...ctx, signal: outer.beforeWriting }
    // Before a write, a renamed label would be the wrong one.
    await loadLabels(pce, planning, 'fresh')
    const application = (await resolveApplication(planning, { app_name: app, env_name: env })) as [Label, Label]
    const prepared = await prepareRingfence(planning, application, options, shareReads(planning, days), dryRun)
    planning.signal.throwIfAborted()
    const written = dryRun ? null : await writePrepared(ctx, prepared)
    return showRingfence(prepared, written, { detail, limits, orgId: pce.orgId })
  },
})
