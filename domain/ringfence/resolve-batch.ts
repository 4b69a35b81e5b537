import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { resolveApplication } from '../inventory/resolve-application.js'
import { ringfenceName } from './find-ringfence.js'
import type { RingfenceOptions } from './prepare-ringfence.js'

export interface BatchArguments extends RingfenceOptions {
  app_name: string
  env_name: string
}

/** An application of a batch with its labels, or why it will not be worked on. */
export type BatchEntry = { app: string; env: string } & (
  | { state: 'ready'; application: readonly [Label, Label]; options: RingfenceOptions }
  | { state: 'unknown'; error: ToolError }
  | { state: 'duplicate' }
)

/**
 * The applications of a batch in their order. One that cannot be found is an entry with its error, one that was named before (in
 * whatever form) a duplicate. Throws invalid_argument where two different applications would share one rule set: the second
 * would only fail after the first was written.
 */
export async function resolveBatch(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  apps: readonly BatchArguments[],
): Promise<BatchEntry[]> {
  const entries: BatchEntry[] = []
  const seen = new Set<string>()
  const owners = new Map<string, string>()
  for (const { app_name: askedApp, env_name: askedEnv, ...options } of apps) {
    let application: readonly [Label, Label]
    try {
      application = (await resolveApplication(ctx, { app_name: askedApp, env_name: askedEnv })) as [Label, Label]
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      entries.push({ app: askedApp, env: askedEnv, state: 'unknown', error })
      continue
    }
    const [app, env] = application
    const names = { app: app.value, env: env.value }
    const id = `${app.href} ${env.href}`
    if (seen.has(id)) {
      entries.push({ ...names, state: 'duplicate' })
      continue
    }
    seen.add(id)
    const name = options.ruleset_name ?? ringfenceName(application)
    const shown = `${app.value} (${env.value})`
    const owner = owners.get(name)
    if (owner !== undefined) {
      const text = `${owner} and ${shown} would both be the rule set ${name}. Nothing was written.`
      throw new ToolError(
        'invalid_argument',
        text,
        { argument: 'apps' },
        { hint: 'Give one a ruleset_name of its own.' },
      )
    }
    owners.set(name, shown)
    entries.push({ ...names, state: 'ready', application, options })
  }
  return entries
}
