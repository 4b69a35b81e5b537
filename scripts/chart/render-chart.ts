/** Renders the Helm chart with Go's own templates, which come from Debian's packages (see render.go). */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const CHART = join(ROOT, 'deploy/helm/svc-mcp')

export interface Renderer {
  /** Renders the manifests of the chart with these files of values. Throws Error if the chart refuses the values. */
  render: (...valueFiles: string[]) => string
  remove: () => void
}

/** Compiles the renderer. Throws Error if Go or its libraries are missing. */
export function buildRenderer(): Renderer {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'))
  const program = join(folder, 'render')
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOFLAGS: '',
    GOPATH: '/usr/share/gocode',
    GOCACHE: join(folder, 'cache'),
  }
  const run = (command: string, args: string[]) => {
    const { status, stdout, stderr, error } = spawnSync(command, args, { env, encoding: 'utf8', cwd: ROOT })
    if (error) throw new Error(`${command} is missing (.ci/install-packages installs it): ${error.message}`)
    if (status !== 0) throw new Error(stderr)
    return stdout
  }
  run('go', ['build', '-o', program, 'scripts/chart/render.go'])
  return {
    render: (...valueFiles) => run(program, [CHART, 'svc-mcp', 'svc-mcp', ...valueFiles]),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const HEADING = `# Rendered from deploy/helm/svc-mcp with values.yaml beside this file, for those without Helm (npm run generate -- kubernetes). What to replace before
# it is applied, and the Secrets that it needs: docs/deploy.md.
`

/** Renders the text of deploy/kubernetes/svc-mcp.yaml. */
export const kubernetesText = ({ render }: Renderer): string =>
  HEADING + render(join(ROOT, 'deploy/kubernetes/values.yaml')).replaceAll('managed-by: Helm', 'managed-by: kubectl')
