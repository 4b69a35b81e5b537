/** Reads a wrong configuration as the programs do, in this process. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathsIn, readConfig, readEnvironment } from '../../../config/index.js'
import { findFileFaults } from '../../../programs/composition/compose-unauthenticated.js'
import { findHttpFaults } from '../../../programs/composition/find-http-faults.js'
import { findOfferFaults, warnOfOffer } from '../../../programs/composition/offer-tools.js'
import { findConfirmFaults } from '../../../programs/composition/require-confirmations.js'
import { checkPathsAnswer } from '../../../programs/process/check-paths-answer.js'
import { StartupError } from '../../../schemas/config.js'
import { catalogue as tools } from '../../../tools/catalogue/index.js'
import type { Stage } from './set-stage.js'
import { STARTS, type Answers, type Start, type WrongSettings } from './starts.js'
import { createReader, fillSettings } from './words.js'

/** What is found while the settings are read, in a folder of their own. `right` are the warnings of the start without the fault. */
export async function readCase(
  { start: name, env = {}, make }: WrongSettings,
  stage: Stage,
  right: readonly string[] = [],
): Promise<Required<Omit<Answers, 'answered'>>> {
  const start: Start = STARTS[name]
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wrong-')))
  const words = { ...stage.values, $DIR: folder }
  const read = createReader(words)
  const before = { env: process.env, folder: process.cwd() }
  try {
    make?.(folder, stage)
    process.env = fillSettings({ ...start.env, ...env }, words)
    process.chdir(folder)
    const { faults, warnings } = await readAs(start.program)
    return {
      refused: faults.map(({ problem, remedy }) => read({ msg: problem, remedy })),
      warned: warnings.map((msg) => read({ msg })).filter((said) => !right.includes(said)),
    }
  } finally {
    process.env = before.env
    process.chdir(before.folder)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The faults and warnings that a program finds before it opens anything. */
async function readAs(program: Start['program']): Promise<Pick<StartupError, 'faults' | 'warnings'>> {
  const isStdio = program === 'svc-mcp'
  try {
    const { env, ...found } = readEnvironment({ hasForm: isStdio })
    await checkPathsAnswer(pathsIn(env))
    const { warnings } = isStdio
      ? readConfig('stdio', env, {
          found,
          check: (config) => ({
            faults: [...findFileFaults(config), ...findOfferFaults(config, tools), ...findConfirmFaults(config, tools)],
            warnings: warnOfOffer(config, tools),
          }),
        })
      : readConfig('http', env, LOOPBACK, {
          found,
          check: (config) => ({ faults: findHttpFaults(config, tools), warnings: warnOfOffer(config, tools) }),
        })
    return { faults: [], warnings }
  } catch (error) {
    if (error instanceof StartupError) return error
    throw error
  }
}

const LOOPBACK = { host: '127.0.0.1', port: 8080 }
