import { Type, type Static } from '@sinclair/typebox'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { ContainerCluster } from '../../schemas/pce/container-cluster.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { matchExactly } from '../../domain/inventory/match-exactly.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { withoutNulls } from '../answers/show-policy-objects.js'

const NAME = 'get-container-clusters'
const DEFAULT_MAX_RESULTS = 50
/** Maximum number of nodes shown per cluster. The largest clusters have thousands, which do not fit into an answer. */
const MAX_NODES = 500

const Row = Type.Object({
  href: Type.String(),
  name: Type.String({ description: 'Name' }),
  online: Type.Boolean({ description: 'Absent: the PCE does not tell' }),
  clas_mode: Type.Boolean({ description: 'Cluster-local actor store' }),
  cluster_mode: Type.String({ description: 'legacy or clas' }),
  kubelink_version: Type.String({ description: 'Kubelink' }),
  container_runtime: Type.String({ description: 'Runtime' }),
  manager_type: Type.String({ description: 'Orchestrator' }),
  last_connected: Type.String({ description: 'When Kubelink was last heard' }),
  errors: Type.Array(Type.String(), { description: 'error_type: ids (event)' }),
  node_count: Type.Integer(),
  nodes: Type.Array(Type.Object({ name: Type.Optional(Type.String({ description: 'Node' })) }), {
    description: `Nodes, ${MAX_NODES} at most`,
  }),
})

const output = Type.Object({
  container_clusters: Type.Array(Type.Partial(Row), { description: 'Clusters of this page' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Clusters (Kubernetes, OpenShift).',
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

/** Formats an error of a cluster, such as `duplicate_machine_ids: ID, ID (/orgs/1/events/7)`. */
function writeError({ error_type: type, duplicate_ids: ids, audit_event: event }: ClusterError): string {
  const duplicates = (ids ?? []).map((id) => (typeof id === 'string' ? id : JSON.stringify(id))).join(', ')
  const text = duplicates === '' ? (type ?? 'unknown') : `${type ?? 'unknown'}: ${duplicates}`
  return event == null ? text : `${text} (${event.href})`
}

function showCluster(cluster: ContainerCluster) {
  const nodes = cluster.nodes ?? []
  const { cluster_mode: mode } = cluster
  return {
    href: cluster.href,
    ...withoutNulls({
      name: cluster.name,
      online: cluster.online,
      clas_mode: mode == null ? null : mode === 'clas',
      cluster_mode: mode,
      kubelink_version: cluster.kubelink_version,
      container_runtime: cluster.container_runtime,
      manager_type: cluster.manager_type,
      last_connected: cluster.last_connected,
      errors: cluster.errors?.map(writeError),
    }),
    node_count: nodes.length,
    nodes: nodes.slice(0, MAX_NODES).map(({ name }) => withoutNulls({ name })),
  }
}
