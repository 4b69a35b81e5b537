import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, Nullable } from '../../schemas/common.js'
import { LabelOut, LabelsOut } from '../../schemas/label-reference.js'
import { PairingProfileOut } from '../../schemas/pairing-shapes.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { matchExactly } from '../../domain/inventory/match-exactly.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { showLabelOf } from '../answers/show-label.js'
import { labelExpander } from '../../domain/inventory/labels.js'

const NAME = 'get-pairing-profiles'
const DEFAULT_MAX_RESULTS = 50

/** The limits of a profile's pairing keys. A row has them if detail_level is full or `fields` names them. */
const KeyLimits = Type.Pick(PairingProfileOut, ['key_lifespan', 'allowed_uses_per_key']).properties

const Row = Type.Object({
  href: Type.String(),
  name: Type.String(),
  enforcement_mode: Nullable(Type.String()),
  enforcement_mode_lock: Nullable(Type.Boolean({ description: 'Fixed by the profile' })),
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  labels: LabelsOut(LabelOut, 'Labels of new workloads, key=value'),
  ...KeyLimits,
})

const output = Type.Object({
  pairing_profiles: Type.Array(Type.Partial(Row), { description: 'Profiles of this page' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Pairing profiles of new workloads.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part(),
      ...ExactInput,
      detail_level: DetailLevel('full: limits of its keys, labels as objects'),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, detail_level: detail, ...question } = args
    const select = selectFields(fields, Row)
    const { pce, limits, signal } = ctx
    const { exact, ...filters } = question
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const ownFilter = matchExactly<PairingProfile>(exact, filters, { name: ({ name }) => [name] })
    const query = { api: pce.pairingProfiles, params: filters, signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), ownFilter)
    const given = slice.items.flatMap((profile) => profile.labels ?? [])
    const expand = await labelExpander(pce, given, ctx)
    const hasLimits = detail === 'full' || Object.keys(KeyLimits).some((name) => fields?.includes(name))
    const shown = slice.items.map((profile) =>
      select({ ...showPairingProfile(profile, expand, detail), ...(hasLimits && showLimits(profile)) }),
    )
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, { pairing_profiles: [] })
    return { pairing_profiles: rows, ...paging }
  },
})

const showLimits = ({ key_lifespan: lifespan, allowed_uses_per_key: uses }: PairingProfile) => ({
  key_lifespan: lifespan ?? null,
  allowed_uses_per_key: uses ?? null,
})

function showPairingProfile(
  profile: PairingProfile,
  expand: (label: LabelRef) => LabelRef,
  detail: 'standard' | 'full' | undefined,
) {
  return {
    href: profile.href,
    name: profile.name ?? '',
    enforcement_mode: profile.enforcement_mode ?? null,
    enforcement_mode_lock: profile.enforcement_mode_lock ?? null,
    enabled: profile.enabled === true,
    is_default: profile.is_default === true,
    labels: (profile.labels ?? []).map((label) => showLabelOf(expand(label), detail)),
  }
}
