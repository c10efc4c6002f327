// node webhook.mjs PAGE: runs the receiver of the how-to page over messages on stdin, [{secret, headers, body}],
// and prints what it makes of each: the type of the event, null if it came before, or "refused".
import { readFileSync } from 'node:fs'

const code = readFileSync(process.argv[2], 'utf8').match(/```js\n([^]+?)```/)[1]
const library = import.meta.resolve('standardwebhooks')
const { receive } = await import('data:text/javascript,' + encodeURIComponent(code.replace("'standardwebhooks'", `'${library}'`)))
const results = JSON.parse(readFileSync(0, 'utf8')).map(({ secret, headers, body }) => {
  try {
    return receive(secret, headers, body)?.type ?? null
  } catch {
    return 'refused'
  }
})
console.log(JSON.stringify(results))
