/** The dashboard and the alerts, held against what the server exports and what the page says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { ROOT } from '../deploy/manifests.js'
import { startMeasured } from './measured-service.js'

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; action: string; runbook_url: string }
}

interface Panel {
  id: number
  type: string
  title: string
  description?: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string }[]
}

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const rules = (parse(textOf('deploy/monitoring/alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const dashboard = JSON.parse(textOf('deploy/monitoring/dashboard.json')) as {
  panels: Panel[]
  templating: { list: { name: string; definition?: string }[] }
}

/** Words of PromQL that stand where a metric could. */
const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset'])

/** The metrics that a query asks for, without the names of labels, functions and variables. */
function metricsIn(query: string): string[] {
  const bare = query
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
  return [...bare.matchAll(/[a-zA-Z_:][\w:]*(?!\w*\s*\()/g)].map(([name]) => name).filter((name) => !KEYWORDS.has(name))
}

t.test('metrics are found in queries, and words of the language are not', (t) => {
  const query = 'topk(3, sum by (a, b) (rate(x_total{c="d", e!~"f|g"}[5m]))) / on (h) y > 0.5 unless z'
  t.strictSame(metricsIn(query), ['x_total', 'y', 'z'])
  t.end()
})

t.test('every metric of the dashboard and of the alerts is one that the server exports', async (t) => {
  const { scrape } = await startMeasured(t)
  const { names } = await scrape()
  const queries = [
    ...rules.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ]
  t.ok(queries.length > 40)
  const unknown = queries.flatMap(metricsIn).filter((name) => !names.has(name))
  t.strictSame([...new Set(unknown)], ['up'], 'up is of Prometheus itself')
  const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? [])
  t.ok(variables.every((definition) => names.has(/^label_values\((\w+)/.exec(definition)![1]!)))
  const own = [...names].filter((name) => name.startsWith('svc_mcp_') && !/_(sum|bucket|count)$/.test(name))
  const told = new Set(queries.flatMap(metricsIn))
  t.strictSame(
    own.filter((name) => !told.has(name)),
    [],
    'and each of its own is on one of them',
  )
})

t.test('every alert says what to do, and has its section', (t) => {
  const [, table = ''] = /\n## What each alert means\n([\s\S]*?)\n## /.exec(textOf('docs/operations.md')) ?? []
  const sections = [...table.matchAll(/^### (\w+)$/gm)].map(([, name]) => name)
  t.strictSame(
    sections,
    rules.map(({ alert }) => alert),
  )
  for (const { alert, labels, annotations } of rules) {
    t.match(labels.severity, /^(critical|warning)$/, alert)
    t.ok(annotations.summary.length > 20 && annotations.action.length > 20, alert)
    t.equal(annotations.runbook_url, `docs/operations.md#${alert.toLowerCase()}`)
  }
  t.end()
})

t.test('panels of the dashboard have ids of their own, and none covers another', (t) => {
  const { panels } = dashboard
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Set<string>()
  for (const {
    title,
    type,
    description,
    gridPos: { x, y, w, h },
  } of panels) {
    t.ok(x >= 0 && x + w <= 24, title)
    if (type !== 'row') t.ok(description, title)
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        const cell = `${column} ${line}`
        if (taken.has(cell)) t.fail(`${title} covers another panel at ${cell}`)
        taken.add(cell)
      }
  }
  t.end()
})

t.test('the shippers read what the server writes where it is deployed', (t) => {
  const rsyslog = textOf('deploy/monitoring/rsyslog.conf')
  const [, file] = /File="([^"]+)"/.exec(rsyslog)!
  t.ok(textOf('deploy/systemd/svc-mcp.logrotate').includes(`${file} {`))
  const { pipeline } = parse(textOf('deploy/monitoring/fluent-bit.yaml')) as {
    pipeline: Record<'inputs' | 'filters' | 'outputs', Record<string, string>[]>
  }
  t.strictSame(
    pipeline.filters.flatMap(({ rule }) => (rule ? rule.split(' ')[2] : [])),
    pipeline.outputs.map(({ match }) => match),
    'each stream has its way out',
  )
  t.match(pipeline.inputs[0]!.path, /_svc-mcp_server-/)
  t.end()
})
