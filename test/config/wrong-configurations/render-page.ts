/** docs/wrong-configurations.md: every wrong configuration with what it was answered. */
import { renderTable } from '../../../scripts/docs/markdown.js'
import { STARTS, THEMES, type Case, type Settings, type Start } from './cases.js'
import { setStage, WORDS, type Closing } from './set-stage.js'
import { tryCase, type Outcome, type Said } from './try-case.js'

export const PAGE = 'docs/wrong-configurations.md'

/** Processes at a time. */
const SIDE_BY_SIDE = 3

export interface Tried {
  wrong: Case
  outcome: Outcome
}

/** Tries every case of every theme, in their order. Rejects with Error where one of the starts is refused though nothing is wrong with it. */
export async function tryAll(t: Closing): Promise<Tried[][]> {
  const stage = await setStage(t)
  const right = new Map<Case['start'], readonly Said[]>()
  const names = Object.keys(STARTS) as Case['start'][]
  await inTurns(names, async (start) => {
    const { exitCode, refusals, warnings } = await tryCase({ start }, stage)
    if (exitCode !== null && start !== 'nothing') throw new Error(`${start}: ${JSON.stringify(refusals)}`)
    right.set(start, warnings)
  })
  const tried = await inTurns(
    THEMES.flatMap(({ cases }) => cases),
    async (wrong) => ({ wrong, outcome: await tryCase(wrong, stage, right.get(wrong.start)) }),
  )
  return THEMES.map(({ cases }) => tried.splice(0, cases.length))
}

/** The results in the order of the items, a few of which are worked on at a time. */
async function inTurns<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  const left = [...items.entries()]
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await work(next[1])
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
  return results
}

export function renderPage(tried: readonly Tried[][]): string {
  const count = tried.flat().length
  const sections = THEMES.map(({ title }, theme) => {
    // Without numbers: a new row should not change those below it.
    const rows = tried[theme]!.map(({ wrong, outcome }) => [describeCase(wrong), describeOutcome(outcome, wrong)])
    return `## ${title}\n\n${renderTable(['Set wrongly', 'What comes back'], rows)}`
  })
  return `${HEAD(count)}\n\n${sections.join('\n\n')}\n`
}

const HEAD = (count: number) => `# Wrong configurations

What the programs answer to ${count} wrong configurations. To find a message that you have, search this page for its words. Every text is as
the programs wrote it: \`npm run wrong-configurations\` starts them with each row and writes the page, and a test compares the two.

A program that is not started tells everything that is wrong at once, each fault with its remedy (after →), and exits with 1. Where a row
has only warnings, the server runs. Each row is one of these starts, which are right, but for what the row says:

${renderTable(
  ['Start', 'Program', 'Settings'],
  Object.entries(STARTS)
    .filter(([name]) => name !== 'tried')
    .map(([name, { program, env }]) => [
      TITLES[name as Case['start']],
      code(program),
      Object.keys(env).length === 0 ? 'none' : describeSettings(env),
    ]),
)}

Words that begin with \`$\` stand for what differs from run to run:

${renderTable(
  ['Word', 'Stands for'],
  Object.entries({ $DIR: 'the working directory', $UID: 'the user of the server', ...WORDS }).map(([word, meaning]) => [
    code(word),
    meaning,
  ]),
)}`

const TITLES: Record<Case['start'], string> = {
  stdio: 'stdio',
  tried: 'stdio',
  nothing: 'HTTP',
  development: 'development',
  per_user: 'per_user',
  shared: 'shared',
}

const code = (text: string) => {
  const shown = text.replaceAll('\n', '\\n').replaceAll('\r', '\\r')
  return shown.includes('`') ? `\`\` ${shown} \`\`` : `\`${shown}\``
}

const describeSettings = (settings: Settings) =>
  Object.entries(settings)
    .map(([name, value]) => (value === null ? `no ${code(name)}` : code(`${name}=${value}`)))
    .join('<br>')

function describeCase({ start, env, args, given, earlier }: Case): string {
  const { program }: Start = STARTS[start]
  return [
    TITLES[start],
    ...(env === undefined ? [] : [describeSettings(env)]),
    ...(args === undefined ? [] : [code([program, ...args.map((arg) => (arg === '' ? "''" : arg))].join(' '))]),
    ...(given === undefined ? [] : [given]),
    ...(earlier === undefined || given !== undefined ? [] : ['a server was started before']),
    ...((env ?? args ?? given) ? [] : ['as it is']),
  ].join('<br>')
}

function describeOutcome({ exitCode, refusals, warnings, answer }: Outcome, { ask }: Case): string {
  return [
    ...(exitCode === null || exitCode === 1 ? [] : [`*Ends with ${exitCode}*`]),
    ...refusals.map(describeSaid),
    ...warnings.map((said) => `*Warns:* ${describeSaid(said)}`),
    ...(answer === undefined ? [] : [`*${ask === 'readyz' ? '`/readyz`' : `\`${ask}\``}:* ${describeSaid(answer)}`]),
  ].join('<br>')
}

const describeSaid = ({ problem, remedy }: Said) =>
  `${code(problem)}${remedy === undefined ? '' : `<br>→ ${plain(remedy)}`}`

/** Text in which nothing is markup. */
const plain = (text: string) => text.replaceAll(/[*`<>]/g, '\\$&')
