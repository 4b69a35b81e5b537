import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, Nullable } from '../../schemas/common.js'
import { LabelsOut } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { KubernetesWorkload } from '../../schemas/pce/container-cluster.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize, defaultSize } from '../answers/page-list.js'
import { createListTally, TotalsOut } from '../answers/tally-list.js'
import { selectFields } from '../answers/select-fields.js'
import { showLabelOf } from '../answers/show-label.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { findByHref } from '../../domain/inventory/find-object.js'

const NAME = 'get-kubernetes-workloads'
const Text = (description: string) => Nullable(Type.String({ description }))

const Row = Type.Object({
  href: Type.String(),
  name: Nullable(Type.String()),
  kind: Nullable(Type.String()),
  namespace: Nullable(Type.String()),
  labels: LabelsOut(Type.Object({ key: Type.String(), value: Type.String() }), 'key=value'),
  enforcement_mode: Text('Mode'),
  security_policy_sync_state: Text('syncing or applied'),
  cluster: Text('Cluster name'),
  cluster_href: Type.Optional(Text('Cluster; full detail, or where the name does not tell which')),
})

const output = Type.Object({
  kubernetes_workloads: Type.Array(Type.Partial(Row), { description: 'Workloads of this page' }),
  ...PagingOutput,
  ...TotalsOut,
})

export default defineTool({
  name: NAME,
  summary: 'Kubernetes workloads (deployments etc.).',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      cluster_href: Type.Optional(Type.String({ description: 'Exact' })),
      namespace: Part(),
      ...ExactInput,
      detail_level: DetailLevel('full: objects, cluster_href'),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults, fields, detail_level: detail, ...question } = args
    const select = selectFields(fields, Row)
    const { pce, limits, signal } = ctx
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const { cluster_href: href, namespace, exact } = question
    const cluster =
      href === undefined ? undefined : await findByHref(pce, 'container_clusters', href.trim(), 'draft', signal)
    const params = { namespace, container_clusters: cluster && [cluster.href] }
    // The PCE filters by href, but it is not documented how it compares hrefs. So this server compares the cluster's
    // href again for every returned workload.
    const ownFilter = allOf<KubernetesWorkload>(
      cluster && ((workload) => workload.container_cluster?.href === cluster.href),
      matchExactly(exact, { namespace }, { namespace: (workload) => [workload.namespace] }),
    )
    const query = { api: pce.kubernetesWorkloads, params, signal }
    const isUsual = cursor === undefined && maxResults === undefined && detail !== 'full'
    const tally = isUsual ? createListTally(DIVISIONS, labelsOf) : undefined
    const size = pageSize(maxResults ?? defaultSize(detail, LONG_ROWS), limits, fields)
    const slice = await fetchSlice(query, position, size, ownFilter, tally)
    const borne = [...slice.items.flatMap(labelsOf), ...(slice.more ? (tally?.labels() ?? []) : [])]
    const expand = await labelExpander(pce, borne, ctx)
    const isWhole = detail === 'full' || fields?.includes('cluster_href') === true
    const isNamed = tellsCluster(slice.items)
    const shown = slice.items.map((workload) => {
      const { cluster_href: of, ...row } = showKubernetesWorkload(workload, expand, detail)
      return select({ ...row, ...((isWhole || !isNamed(workload)) && { cluster_href: of }) })
    })
    const totals = tally?.totals(slice, limits, expand)
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, {
      kubernetes_workloads: [],
      ...totals,
    })
    return { kubernetes_workloads: rows, ...paging, ...totals }
  },
})

/** The properties, besides labels, by which totals break down the workloads. */
const DIVISIONS = {
  namespace: ({ namespace }: KubernetesWorkload) => namespace ?? null,
  enforcement_mode: ({ enforcement_mode: mode }: KubernetesWorkload) => mode ?? null,
}
const labelsOf = ({ labels }: KubernetesWorkload) => labels ?? []

function showKubernetesWorkload(
  workload: KubernetesWorkload,
  expand: (label: LabelRef) => LabelRef,
  detail: 'standard' | 'full' | undefined,
) {
  const cluster = workload.container_cluster
  return {
    href: workload.href,
    name: workload.name ?? null,
    kind: workload.kind ?? null,
    namespace: workload.namespace ?? null,
    labels: (workload.labels ?? []).map((label) => withoutOwnHref(showLabelOf(expand(label), detail))),
    enforcement_mode: workload.enforcement_mode ?? null,
    security_policy_sync_state: workload.security_policy_sync_state ?? null,
    cluster: cluster?.name ?? null,
    cluster_href: cluster?.href ?? null,
  }
}

/** Removes the href from a label that is shown with key and value, because these identify the label. */
const withoutOwnHref = (label: ReturnType<typeof showLabelOf>) =>
  typeof label === 'string' ? label : { key: label.key, value: label.value }

/**
 * Returns a function that tests whether the name of a workload's cluster is unique among the clusters of these
 * workloads.
 */
function tellsCluster(workloads: readonly KubernetesWorkload[]): (workload: KubernetesWorkload) => boolean {
  const hrefs = new Map<string, Set<string>>()
  for (const { container_cluster: cluster } of workloads) {
    if (cluster?.name == null) continue
    hrefs.set(cluster.name, (hrefs.get(cluster.name) ?? new Set()).add(cluster.href))
  }
  return ({ container_cluster: cluster }) => hrefs.get(cluster?.name ?? '')?.size === 1
}
