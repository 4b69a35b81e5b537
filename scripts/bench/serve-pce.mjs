// The server for the client's benchmarks, which runs in a separate process. It has one page of labels, and a traffic
// query that is complete at once with 200,000 rows. Its answers are prepared in advance, so that the work for creating
// them is not measured together with that of the client.
import { Buffer } from 'node:buffer'
import { createServer } from 'node:http'
import { finished } from 'node:stream'

const ROWS = 200_000
const ROWS_PER_BLOCK = 2000
const QUERY = '/orgs/1/traffic_flows/async_queries/1'

const labels = JSON.stringify(
  Array.from({ length: 20 }, (_, index) => ({
    href: `/orgs/1/labels/${index}`,
    key: 'app',
    value: `Application ${index}`,
    deleted: false,
    created_at: '2026-03-01T10:00:00.000Z',
    updated_at: '2026-03-01T10:00:00.000Z',
    created_by: { href: '/users/1' },
    updated_by: { href: '/users/1' },
  })),
)
const query = { href: QUERY, status: 'completed', result: `${QUERY}/download`, matches_count: ROWS, flows_count: ROWS }
const block = Buffer.from(Array.from({ length: ROWS_PER_BLOCK }, (_, index) => JSON.stringify(flow(index))).join(','))

const server = createServer((request, response) => {
  const path = request.url.replace('/api/v2', '')
  request.resume()
  response.setHeader('content-type', 'application/json')
  if (path.startsWith('/orgs/1/labels')) response.setHeader('x-total-count', '20').end(labels)
  else if (path === `${QUERY}/download`) void sendFlows(response)
  else if (path === QUERY) response.end(JSON.stringify(query))
  else response.writeHead(202, { location: QUERY }).end(JSON.stringify({ href: QUERY, status: 'queued' }))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))

async function sendFlows(response) {
  const blocks = ROWS / ROWS_PER_BLOCK
  response.setHeader('content-length', blocks * (block.length + 1) + 1)
  const closed = new Promise((resolve) => finished(response, resolve))
  for (let index = 0; index < blocks; index += 1) {
    response.write(index === 0 ? '[' : ',')
    if (!response.write(block)) {
      await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
    }
  }
  response.end(']')
}

function flow(index) {
  const workload = (number) => ({
    href: `/orgs/1/workloads/9b2d0b1e-0000-4000-8000-${String(number).padStart(12, '0')}`,
    hostname: `app-${number}.example.com`,
    name: `app-${number}`,
    os_type: 'linux',
    managed: true,
    labels: [
      { href: '/orgs/1/labels/14', key: 'app', value: 'ERP' },
      { href: '/orgs/1/labels/7', key: 'env', value: 'Production' },
    ],
  })
  return {
    src: { ip: `10.0.${index >> 8}.${index & 255}`, workload: workload(index) },
    dst: { ip: `10.1.${index >> 8}.${index & 255}`, workload: workload(index + 7) },
    service: { port: 443, proto: 6, process_name: 'nginx', windows_service_name: null, user_name: 'app' },
    num_connections: (index % 90) + 1,
    state: 'closed',
    policy_decision: 'potentially_blocked',
    flow_direction: 'outbound',
    timestamp_range: { first_detected: '2026-02-25T08:00:00Z', last_detected: '2026-02-28T21:14:09Z' },
    dst_bi: 1520,
    dst_bo: 48_211,
    caps: [],
  }
}
