import { readRoute, type Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { describeHealth } from './describe-health.js'
import { jobRoutes } from './jobs.js'
import { riskRoutes } from './risk-routes.js'

export const PRODUCT_VERSION = {
  version: '25.2.10',
  build: 1234,
  release_info: '',
  engineering_info: '',
  long_display: '25.2.10-1234',
  short_display: '25.2.10',
  product_name: 'PCE',
}

/** The routes of the PCE itself, which do not belong to an organisation (P1), and the routes of jobs. */
export const statusRoutes: Route[] = [
  readRoute('/product_version', () => ({ status: 200, json: PRODUCT_VERSION })),
  readRoute('/noop', () => ({ status: 204 })),
  // The routes `node_available` and `supercluster/leader` answer with their status alone: 200 with an empty body, or
  // 404 (P13, P42).
  readRoute('/node_available', ({ world }) => {
    if (!world.options.nodeAvailable) throw notFound()
    return { status: 200 }
  }),
  readRoute('/supercluster/leader', ({ world }) => {
    if (world.options.supercluster === 'member') throw notFound()
    return { status: 200 }
  }),
  readRoute('/health', ({ world }) => ({ status: 200, json: [describeHealth(world)] })),
  ...jobRoutes,
  ...riskRoutes,
]
