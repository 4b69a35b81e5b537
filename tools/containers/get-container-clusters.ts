import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../../schemas/common.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { ContainerCluster } from '../../schemas/pce/container-cluster.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { matchExactly } from '../../domain/inventory/match-exactly.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'get-container-clusters'
const DEFAULT_MAX_RESULTS = 50
/** Maximum number of nodes shown per cluster. The largest clusters have thousands, which no answer can hold. */
const MAX_NODES = 500
const Text = (description: string) => Nullable(Type.String({ description }))

const Row = Type.Object({
  href: Type.String(),
  name: Text('Name'),
  online: Nullable(Type.Boolean()),
  clas_mode: Nullable(Type.Boolean({ description: 'Cluster-local actor store' })),
  cluster_mode: Text('legacy or clas'),
  kubelink_version: Text('Kubelink'),
  container_runtime: Text('Runtime'),
  manager_type: Text('Orchestrator'),
  last_connected: Text('When Kubelink was last heard'),
  errors: Nullable(
    Type.Array(
      Type.Object({
        error_type: Text('Kind'),
        machine_ids: Type.Optional(Type.Array(Type.String(), { description: 'Ids of several nodes' })),
        audit_event: Type.Optional(Type.String({ description: 'Event' })),
      }),
      { description: 'Reported by the PCE' },
    ),
  ),
  node_count: Type.Integer(),
  nodes: Type.Array(Type.Object({ name: Text('Node') }), { description: `Nodes, ${MAX_NODES} at most` }),
})

const output = Type.Object({
  container_clusters: Type.Array(Type.Partial(Row), { description: 'Clusters of this page' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Container clusters (Kubernetes, OpenShift).',
  effect: 'read',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part(),
      ...ExactInput,
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, ...question } = args
    const select = selectFields(fields, Row)
    const { exact, ...filters } = question
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const ownFilter = matchExactly<ContainerCluster>(exact, filters, { name: ({ name }) => [name] })
    const query = { api: pce.containerClusters, params: filters, signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), ownFilter)
    const shown = slice.items.map((cluster) => select(showCluster(cluster)))
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, { container_clusters: [] })
    return { container_clusters: rows, ...paging }
  },
})

type ClusterError = NonNullable<ContainerCluster['errors']>[number]

/** Shows an error of a cluster; in one about machine ids, `duplicate_ids` are those that several nodes have. */
function showError({ error_type: type, duplicate_ids: ids, audit_event: event }: ClusterError) {
  return {
    error_type: type ?? null,
    ...(ids != null &&
      ids.length > 0 && { machine_ids: ids.map((id) => (typeof id === 'string' ? id : JSON.stringify(id))) }),
    ...(event != null && { audit_event: event.href }),
  }
}

function showCluster(cluster: ContainerCluster) {
  const nodes = cluster.nodes ?? []
  return {
    href: cluster.href,
    name: cluster.name ?? null,
    online: cluster.online ?? null,
    clas_mode: cluster.cluster_mode == null ? null : cluster.cluster_mode === 'clas',
    cluster_mode: cluster.cluster_mode ?? null,
    kubelink_version: cluster.kubelink_version ?? null,
    container_runtime: cluster.container_runtime ?? null,
    manager_type: cluster.manager_type ?? null,
    last_connected: cluster.last_connected ?? null,
    errors: cluster.errors?.map(showError) ?? null,
    node_count: nodes.length,
    nodes: nodes.slice(0, MAX_NODES).map(({ name }) => ({ name: name ?? null })),
  }
}
