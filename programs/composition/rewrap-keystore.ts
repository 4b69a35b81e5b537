import type { PerUserConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'

/**
 * Runs `svc-mcp-http rewrap-keystore`, the second step of replacing MCP_KEK. In the first step, all servers are
 * restarted with the new key as MCP_KEK and the old key as MCP_KEK_PREVIOUS. Then this command runs once, while they
 * run. After that, MCP_KEK_PREVIOUS can be removed.
 *
 * @throws {StartupError} (rejects) if there is no keystore, or if neither key opens it.
 */
export async function rewrapKeystore(
  { keystore: config, database }: Pick<PerUserConfig, 'keystore' | 'database'>,
  now: () => number = () => Date.now(),
): Promise<CommandReport> {
  requireState({ path: config.path, variable: 'MCP_KEYSTORE_PATH', ...(database && { database }) }, 'rewrap')
  const { lines, say } = collectLines()
  const { state, keystore } = await openKeystoreState(config, {
    now,
    warn: (line) => say('warn', line),
    ...(database && { database }),
  })
  try {
    const { rewrapped, already, unreadable } = await keystore.rewrap()
    say(
      'info',
      `${rewrapped} rewrapped with MCP_KEK, ${already} already were, ${unreadable} cannot be opened with either key`,
    )
    if (unreadable > 0) say('warn', 'The owners of those must register their PCE credentials again')
    if (config.previousKek) say('info', 'MCP_KEK_PREVIOUS is no longer needed: restart the servers without it')
    return { lines, ok: true }
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    const reason = error.cause instanceof Error ? error.cause.message : error.message
    say('error', `Stopped halfway: ${reason}`)
    say('error', 'Keep both keys and run this again; every record can be opened with one of them')
    return { lines, ok: false }
  } finally {
    await state.close()
  }
}
