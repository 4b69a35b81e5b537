/** Reads what a server answers at /metrics. */

export type Labels = Readonly<Record<string, string>>

export interface Scrape {
  text: string
  /** The series of a metric, each as its labels and its value. */
  readonly series: (name: string) => { labels: Labels; value: number }[]
  /** The value of the only series with exactly these labels; undefined where there is none. */
  readonly value: (name: string, labels?: Labels) => number | undefined
  /** What the server exports, by name as a query has it: those of a histogram with their endings. */
  names: ReadonlySet<string>
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

export function readScrape(text: string): Scrape {
  const lines = text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined || value === undefined) return []
    const read = [...labels.matchAll(LABEL)].map(([, key, text]) => [key!, text!] as const)
    return [{ name, labels: Object.fromEntries(read), value: Number(value) }]
  })
  const series = (name: string) => lines.filter((line) => line.name === name)
  const endings: Record<string, string[]> = { histogram: ['_bucket', '_sum', '_count'] }
  const names = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, name, type]) =>
    (endings[type!] ?? ['']).map((ending) => `${name}${ending}`),
  )
  const keyOf = (labels: Labels) => JSON.stringify(Object.entries(labels).sort())
  return {
    text,
    series,
    value: (name, labels = {}) => series(name).find((line) => keyOf(line.labels) === keyOf(labels))?.value,
    names: new Set(names),
  }
}
