import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { findObject } from '../../domain/inventory/find-object.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { judgeRules } from '../../domain/hygiene/judge-rules.js'
import { FINDING_KINDS, RedundantOutput, showRedundant } from '../answers/hygiene/show-redundant.js'
import { defineTool } from '../define.js'

export default defineTool({
  name: 'find-redundant-rules',
  summary: 'Rules that can go without changing anything; any-to-any rules; scopes without workloads.',
  effect: 'read',
  reads: 'everything',
  toolset: 'hygiene',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 16,
    and: 'one for each container cluster, and for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      policy_version: Type.Optional(
        StringEnum(['draft', 'active'] as const, {
          default: 'draft',
          description: 'active: what is in force',
          listed: '',
        }),
      ),
      kinds: Type.Optional(
        Type.Array(StringEnum(FINDING_KINDS), { minItems: 1, maxItems: 7, description: 'Only these' }),
      ),
      rule_set: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'Only its findings: href, or exact name that only one has',
          listed: 'Name or href',
        }),
      ),
      detail_level: DetailLevel('full: longer lists'),
    },
    { additionalProperties: false },
  ),
  output: RedundantOutput,
  example: {},
  async handler(
    { policy_version: version = 'draft', kinds = FINDING_KINDS, rule_set: asked, detail_level: detail = 'standard' },
    ctx,
  ): Promise<Static<typeof RedundantOutput>> {
    const ruleSet = asked === undefined ? undefined : await findRuleSet(asked)
    const report = await judgeRules(ctx, version)
    return showRedundant(report, { kinds: new Set(kinds), ruleSet, detail, version, limits: ctx.limits })

    async function findRuleSet(reference: string): Promise<string> {
      const named = reference.startsWith('/orgs/') ? { href: reference } : { name: reference }
      return toDraftHref((await findObject(ctx.pce, 'rule_sets', named, ctx.signal)).href)
    }
  },
})
