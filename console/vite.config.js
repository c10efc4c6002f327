import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vite'

/** The build has no address of its own: the server puts its path prefix in the place of `__PREFIX__`. */
const prefix = {
  name: 'prefix',
  enforce: 'post',
  generateBundle(_, bundle) {
    const page = bundle['index.html']
    page.source = page.source.replaceAll('"./assets/', '"__PREFIX__/console/assets/').replaceAll(' crossorigin', '')
  },
}

/** The licences of all packages of which the build contains anything. */
const licences = {
  name: 'licences',
  generateBundle(_, bundle) {
    const used = new Set()
    for (const chunk of Object.values(bundle)) {
      for (const id of Object.keys(chunk.modules ?? {})) {
        const found = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)
        if (found) used.add(found[1])
      }
    }
    const parts = [...used].sort().map((name) => {
      const folder = join(import.meta.dirname, 'node_modules', name)
      const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
      const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').trim() : 'The package has no file with the text of its licence.'
      return `${name} ${version}\nLicence: ${license}\n\n${text}\n`
    })
    const head = 'The console contains code of these packages.\n'
    this.emitFile({ type: 'asset', fileName: 'THIRD_PARTY.txt', source: [head, ...parts].join(`\n${'-'.repeat(80)}\n\n`) })
  },
}

export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [prefix, licences],
  build: {
    outDir: '../src/diptych/console',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    chunkSizeWarningLimit: 700,
  },
})
