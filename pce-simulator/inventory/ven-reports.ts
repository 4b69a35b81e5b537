import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { readRoute, type Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import { orgPath, type World } from '../world.js'
import { UNCERTAIN } from '../uncertain.js'
import { agentOf, findPaired, ownVen, pairedWorkloads, requireVenHrefs } from './ven.js'

const REQUEST = new Shape('support_report_requests_post', Type.Object({ ven: Href }, CLOSED))

/** The routes that ask VENs for support reports, and that show the compatibility reports of idle workloads (P126). */
export const venReportRoutes: Route[] = [
  {
    path: '/orgs/:org/support_report_requests',
    verbs: {
      POST: {
        event: 'support_report_request.create',
        handle({ world, body }) {
          const [href = ''] = requireVenHrefs(world, [REQUEST.read(body).ven])
          const workload = findPaired(world, href)
          if (workload === undefined) throw notFound()
          const request = {
            href: orgPath(world, `/support_report_requests/${world.ids.uuid('support report')}`),
            ven: { href },
          }
          const resource = { ven: { href, name: ownVen(workload)?.name ?? null, hostname: workload.hostname } }
          return { status: 201, json: request, changes: [{ resource, type: 'create' }] }
        },
      },
    },
  },
  ...['agents', 'vens'].map((kind) =>
    readRoute(`/orgs/:org/${kind}/:id/compatibility_report`, ({ world, path }) => {
      const reporter = path.replace(/\/compatibility_report$/, '')
      const workload = kind === 'vens' ? findPaired(world, reporter) : findByAgent(world, reporter)
      if (workload === undefined || (workload.enforcement_mode !== 'idle' && UNCERTAIN.reportOnlyOfIdle))
        throw notFound()
      return { status: 200, json: reportOf(world, workload, reporter) }
    }),
  ),
]

const findByAgent = (world: World, agent: string): PceObject | undefined =>
  pairedWorkloads(world).find((workload) => (agentOf(workload) as { href?: string }).href === agent)

/** Draws a report from the number of the agent or VEN: every third has a potential, every other third a major incompatibility. */
function reportOf(world: World, { os_id: os }: PceObject, reporter: string) {
  const kind = Number(/\d+$/.exec(reporter)?.[0] ?? 0) % 3
  const isWindows = typeof os === 'string' && os.startsWith('win')
  const potential = isWindows
    ? { status: kind === 1 ? 'yellow' : 'green', Group_policy: kind === 1 }
    : { status: kind === 1 ? 'yellow' : 'green', iptables_rule_cnt: kind === 1 ? 12 : 0 }
  const major =
    kind === 2
      ? [{ status: 'red', required_packages_installed: false, required_packages_missing: ['ipset'] }]
      : [{ status: 'green', required_packages_installed: true }]
  return {
    last_updated_at: world.now(),
    qualify_status: ['green', 'yellow', 'red'][kind],
    results: { qualify_tests: [potential, ...major] },
  }
}
