/** `node --import tsx scripts/requests.ts`: the sheet for a model, and what is counted of its answers. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Request } from '../../scripts/requests/judge-answers.js'
import { compiled } from '../suite-folder.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string) => JSON.parse(readFileSync(join(ROOT, 'test/surface', name), 'utf8')) as Request[]
const REQUESTS = [...read('requests.json'), ...read('requests-beyond.json')]
const run = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiled('scripts/requests.ts'), ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return { status, lines: stdout.split('\n').filter((line) => line !== ''), stderr }
}

t.test('the sheet has every request, and no call that it leads to', (t) => {
  const { status, lines } = run('sheet')
  t.equal(status, 0)
  const asked = lines.slice(lines.indexOf('## Requests') + 1)
  t.same(
    asked,
    REQUESTS.map(({ request }, at) => `${at + 1}. ${request}`),
  )
  t.end()
})

t.test('answers are the wanted calls if the server reads them as these and the list takes them', (t) => {
  const answers = REQUESTS.map(({ tool, arguments: args }, at): object => ({ number: at + 1, tool, arguments: args }))
  const judge = (...changed: { number: number; tool?: string; arguments?: object }[]) => {
    const own = answers.map((answer, at) => changed.find(({ number }) => number === at + 1) ?? answer)
    const file = join(t.testdir(), 'answers.jsonl')
    writeFileSync(file, ['Here they are:', ...own.map((answer) => JSON.stringify(answer))].join('\n'))
    return run('judge', file)
  }
  t.same(judge(), { status: 0, lines: ['80 of 80 tools named, 80 with the wanted arguments'], stderr: '' })
  const labels = ['app=payments', 'env=prod']
  const { status, lines } = judge(
    { number: 1, tool: 'get-vens', arguments: { labels, online: false } },
    // A default that is written out is no fault, an argument that the server takes and the list does not is one.
    { number: 13, tool: 'discover-process-egress', arguments: { include_inbound: false } },
    { number: 25, tool: 'get-workload-enforcement-status', arguments: { env: 'prod' } },
    { number: 37, tool: 'ringfence-batch', arguments: { apps: [{ app_name: 'payments', env_name: 'prod' }] } },
    { number: 41 },
  )
  t.equal(status, 1)
  t.same(
    lines.map((line) => line.split(/[:{]/).slice(0, 3).join(':').trim()),
    [
      '1: get-vens instead of get-workloads',
      '25: get-workload-enforcement-status: the list refuses',
      '37: ringfence-batch:',
      '41: no answer instead of explain-flow',
      '78 of 80 tools named, 76 with the wanted arguments',
    ],
  )
  t.end()
})

t.test('it says how it is called', (t) => {
  const { status, lines, stderr } = run('guess')
  t.same(
    { status, lines, stderr },
    { status: 2, lines: [], stderr: 'Usage: node --import tsx scripts/requests.ts sheet | judge FILE\n' },
  )
  t.end()
})
