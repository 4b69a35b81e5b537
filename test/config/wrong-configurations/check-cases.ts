import type { Test } from 'tap'
import type { Answers, WrongSettings } from './starts.js'

/** Fails for a case that is in its theme twice, expects no answer, or is answered in other words. */
export async function checkCases<Case extends WrongSettings>(
  t: Test,
  themes: Readonly<Record<string, readonly Case[]>>,
  answersTo: (wrong: Case) => Promise<Answers>,
): Promise<void> {
  for (const [theme, cases] of Object.entries(themes))
    await t.test(theme, async (t) => {
      const names = cases.map((wrong) => JSON.stringify({ ...wrong, ...NO_ANSWERS }))
      t.same([...new Set(names)], names, 'each once')
      const wanted = cases.map((wrong) => withoutEmpty(wrong))
      t.notOk(
        wanted.some((answers) => Object.keys(answers).length === 0),
        'none is passed over in silence',
      )
      const told: Answers[] = []
      for (const wrong of cases) told.push(withoutEmpty(await answersTo(wrong)))
      t.same(
        Object.fromEntries(names.map((name, at) => [name, told[at]])),
        Object.fromEntries(names.map((name, at) => [name, wanted[at]])),
      )
    })
}

const NO_ANSWERS = { refused: undefined, warned: undefined, answered: undefined }

function withoutEmpty({ refused = [], warned = [], answered }: Answers): Answers {
  return {
    ...(refused.length > 0 && { refused }),
    ...(warned.length > 0 && { warned }),
    ...(answered !== undefined && { answered }),
  }
}
