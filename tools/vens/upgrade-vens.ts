import { Type, type Static } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../../domain/call.js'
import { compareTexts, nearNames } from '../../domain/text/compare-texts.js'
import { quote } from '../../domain/text/escape-text.js'
import { boundTo, carryOut, preview, requestsOf, venChoiceInput, type VenCall } from '../answers/vens/carry-out.js'
import { VenActionOutput } from '../answers/vens/show-ven-action.js'
import { defineTool } from '../define.js'

/**
 * Maximum number of VENs in one call. The PCE would accept 25,000, but so large a selection would probably be a
 * mistake.
 */
const MOST_VENS = 1000
const MOST_LISTED = 10

const input = Type.Object(
  {
    ...venChoiceInput(MOST_VENS),
    release: Type.String({ minLength: 1, description: 'A release that the PCE holds, such as 25.2.20-118' }),
  },
  { additionalProperties: false },
)

/**
 * Checks that the PCE holds the release. The PCE itself would notice an unknown release only when it receives the VENs
 * to upgrade.
 */
async function callOf({ release, ...args }: Static<typeof input>, ctx: ToolContext<true>): Promise<VenCall> {
  const releases = (await ctx.pce.getVenSoftwareReleases({ signal: ctx.beforeWriting })).map((one) => one.release)
  if (!releases.includes(release)) {
    const known = [...releases].sort(compareTexts).slice(-MOST_LISTED).map(quote).join(', ')
    throw new ToolError('not_found', `The PCE holds no VEN release ${quote(release)}. Releases: ${known || 'none'}.`, {
      argument: 'release',
      near_names: nearNames(release, releases),
    })
  }
  return { action: { kind: 'upgrade', release }, args, most: MOST_VENS }
}

export default defineTool({
  name: 'upgrade-vens',
  summary: 'Upgrade VENs to a release that the PCE holds.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'vens-plus',
  idempotent: true,
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: { atMost: 16, and: 'two for each VEN and up to three for each name' },
  input,
  output: VenActionOutput,
  example: { workloads: ['payments-db-1'], release: '25.2.20-118', dry_run: true },
  boundTo: async (args, ctx) => boundTo(ctx, await callOf(args, ctx)),
  preview: async (args, ctx) => preview(ctx, await callOf(args, ctx)),
  plan: async (args, ctx) => requestsOf(ctx, await callOf(args, ctx)),
  handler: async (args, ctx) => carryOut(ctx, await callOf(args, ctx)),
})
