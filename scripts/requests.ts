/**
 * Shows whether a model finds the calls that operators' requests lead to. `sheet` writes what a model is given: the
 * list of tools and the requests. Its answer, one JSON object a line, goes into a file, which `judge` compares with the
 * wanted calls. Exit status 1 says that some were not found.
 *
 * Usage: node --import tsx scripts/requests.ts sheet | judge FILE
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tools } from '../tools/index.js'
import { judgeAnswers, type Call, type Request } from './requests/judge-answers.js'
import { writeSheet } from './requests/write-sheet.js'

const read = (name: string) =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../test/surface/${name}`, import.meta.url)), 'utf8'),
  ) as readonly Request[]
const requests = [...read('requests.json'), ...read('requests-beyond.json')]

const [command, file] = process.argv.slice(2)
if (command === 'sheet') process.stdout.write(writeSheet(requests, tools))
else if (command === 'judge' && file !== undefined) process.exitCode = judge(file)
else {
  console.error('Usage: node --import tsx scripts/requests.ts sheet | judge FILE')
  process.exitCode = 2
}

function judge(path: string): number {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
  const answers = new Map(
    lines.map((line) => {
      const { number, ...call } = JSON.parse(line) as Call & { number: number }
      return [number, call]
    }),
  )
  const { tools: named, arguments: same, faults } = judgeAnswers(requests, answers, tools)
  for (const fault of faults) console.log(fault)
  console.log(`${named} of ${requests.length} tools named, ${same} with the wanted arguments`)
  return faults.length === 0 ? 0 : 1
}
