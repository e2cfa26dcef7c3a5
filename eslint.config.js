// What `make lint` asks of the script of the report's page, and of the scripts that tests run on it.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: [".venv*/", "node_modules/", "brittle-demo/", "build/", "dist/", "docs/"] },
  js.configs.recommended,
  {
    files: ["src/brittle/extensions/report/page/js/**/*.js", "tests/browser/**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-unused-vars": ["error", { varsIgnorePattern: "^_$" }], // `const { [key]: _, ...others } = all`,
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
    },
  },
];
