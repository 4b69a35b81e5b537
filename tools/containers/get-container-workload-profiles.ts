import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../../schemas/common.js'
import { ProfileOut, showProfiles } from '../answers/show-profile.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { ContainerCluster, ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { fetchEvery } from '../../domain/inventory/fetch-every.js'
import { findByHref } from '../../domain/inventory/find-object.js'

const NAME = 'get-container-workload-profiles'

const output = Type.Object({
  profiles: Type.Optional(Type.Array(Type.Partial(ProfileOut), { description: 'Profiles of this page' })),
  ...Type.Partial(Type.Object(PagingOutput)).properties,
  message: Type.Optional(Type.String({ description: 'Why there are clusters and no profiles' })),
  clusters: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        name: Nullable(Type.String()),
        online: Type.Boolean(),
      }),
      { description: 'Name one by cluster_href' },
    ),
  ),
})

export default defineTool({
  name: NAME,
  summary: 'How the pods of namespaces are managed and labelled.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      cluster_href: Type.Optional(Type.String({ description: 'Needed if several', listed: 'If several' })),
      namespace: Type.Optional(Type.String({ minLength: 1, description: 'Name', listed: '' })),
      managed: Type.Optional(Type.Boolean({ description: 'Managed ones', listed: '' })),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = LONG_ROWS, fields, ...filters } = args
    const select = selectFields(fields, ProfileOut)
    const { pce, limits, signal } = ctx
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const { cluster_href: href, namespace, managed } = filters
    const clusters =
      href === undefined
        ? (await fetchEvery({ api: pce.containerClusters, params: {}, signal })).items
        : [await findByHref(pce, 'container_clusters', href.trim(), 'draft', signal)]
    const [cluster, ...others] = clusters
    if (cluster === undefined) return { message: 'The PCE has no container clusters.', clusters: [] }
    if (others.length > 0) {
      return {
        message: 'There are several clusters: name one by cluster_href.',
        clusters: clusters.map(showCluster),
      }
    }
    const wanted = (profile: ContainerWorkloadProfile) =>
      (namespace === undefined || profile.namespace === namespace) &&
      (managed === undefined || (profile.managed === true) === managed)
    const query = { api: pce.containerWorkloadProfiles, parent: cluster.href, params: { namespace, managed }, signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), wanted)
    const shown = (await showProfiles(slice.items, ctx)).map(select)
    const { rows, paging } = await answerPage(NAME, filters, slice, shown, ctx, { profiles: [] })
    return { profiles: rows, ...paging }
  },
})

function showCluster({ href, name, online }: ContainerCluster) {
  return { href, name: name ?? null, online: online === true }
}
