import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { assessHits } from '../../domain/hygiene/assess-hits.js'
import { findUnused, USED_KINDS } from '../../domain/hygiene/find-unused.js'
import { loadReferenceNames } from '../../domain/inventory/reference-names.js'
import { UNUSED_KINDS, UnusedOutput, showUnused, type UnusedKind } from '../answers/hygiene/show-unused.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 30
/** Maximum number of days for which the PCE keeps hit counts (P95). */
const MOST_DAYS = 90

export default defineTool({
  name: 'find-unused',
  summary: 'Labels, label groups, IP lists and services that nothing uses; rules and rule sets that do nothing.',
  effect: 'read',
  reads: 'everything',
  toolset: 'hygiene',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 44,
    and: 'one for each container cluster, for each workload that disabled rules name (50 at most), and three for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      kinds: Type.Optional(
        Type.Array(StringEnum(UNUSED_KINDS), { minItems: 1, maxItems: 7, description: 'Only these' }),
      ),
      hits_days: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MOST_DAYS,
          default: DEFAULT_DAYS,
          description: 'The least that a rule hit count report has to cover',
          listed: 'Days of hits to cover',
        }),
      ),
      detail_level: DetailLevel('full: longer lists'),
    },
    { additionalProperties: false },
  ),
  output: UnusedOutput,
  example: {},
  async handler(
    { kinds = UNUSED_KINDS, hits_days: days = DEFAULT_DAYS, detail_level: detail = 'standard' },
    ctx,
  ): Promise<Static<typeof UnusedOutput>> {
    const wanted = new Set<UnusedKind>(kinds)
    ctx.progress({ progress: 0, total: 2, message: 'Reading what is used' })
    const { kinds: found, idle } = await findUnused(ctx, new Set(USED_KINDS.filter((kind) => wanted.has(kind))))
    ctx.progress({ progress: 1, total: 2, message: 'Reading what was hit' })
    const hits = wanted.has('rule_hits') ? await assessHits(ctx, days) : undefined
    const disabled = wanted.has('rules') ? idle.rules.map(({ rule }) => rule) : []
    const names = await loadReferenceNames(ctx.pce, disabled, ctx)
    return showUnused({ kinds: found, idle, hits }, wanted, names, { detail, limits: ctx.limits })
  },
})
