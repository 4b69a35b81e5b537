/**
 * Shows whether a model finds the calls that operators' requests lead to. `sheet` writes what a model is given: the
 * list of tools and the requests. Its answer, one JSON object a line, goes into a file, which `judge` compares with the
 * wanted calls. Exit status 1 says that some were not found.
 *
 * Usage: node --import tsx scripts/requests.ts sheet | judge FILE
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Call, Request } from './requests/judge-answers.js'

const read = (name: string) =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../test/surface/${name}`, import.meta.url)), 'utf8'),
  ) as readonly Request[]
const requests = [...read('requests.json'), ...read('requests-beyond.json')]
// The tools take a second to load, so they are loaded only for a command that needs them.
const loadTools = async () => (await import('../tools/index.js')).tools

const [command, file] = process.argv.slice(2)
if (command === 'sheet') {
  const { writeSheet } = await import('./requests/write-sheet.js')
  process.stdout.write(writeSheet(requests, await loadTools()))
} else if (command === 'judge' && file !== undefined) process.exitCode = await judge(file)
else {
  console.error('Usage: node --import tsx scripts/requests.ts sheet | judge FILE')
  process.exitCode = 2
}

async function judge(path: string): Promise<number> {
  const { judgeAnswers } = await import('./requests/judge-answers.js')
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
  const answers = new Map(
    lines.map((line) => {
      const { number, ...call } = JSON.parse(line) as Call & { number: number }
      return [number, call]
    }),
  )
  const { tools: named, arguments: same, faults } = judgeAnswers(requests, answers, await loadTools())
  for (const fault of faults) console.log(fault)
  console.log(`${named} of ${requests.length} tools named, ${same} with the wanted arguments`)
  return faults.length === 0 ? 0 : 1
}
