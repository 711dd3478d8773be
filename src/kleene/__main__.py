from kleene.cli import main

main()
