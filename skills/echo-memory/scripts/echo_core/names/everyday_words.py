"""More everyday nouns of English and German, folded: a name spelled like one may be the plain word (spec 3.2).

Words with an ending of `namelike.NOUN_ENDINGS` need no entry, nor do those that `ordinary_words` knows.
"""
from __future__ import annotations

_NOUNS = """
abend abfall abroad accent accident accord acid actor actress adresse adult advert affair aisle akte aktie album alias
allergy alltag alphabet altar alter amateur amt anfang angebot angle angst anhang ankle ankunft anruf ansicht anthem
antrag antwort anwalt anzeige apfel apotheke appetite apron aquarium arena armut arrow aspect assembly asthma athlete
atlas atmosphere atom attic attitude audit aufgabe aufnahme aufsatz auftrag auge ausflug ausgabe auskunft ausland
ausweis avenue axis backen backlog backpack backup bacon badge bahn bahnhof bakery balcony balkon ballet balloon
banana bargain bark barrel bart basil basin bathroom battery battle bau beam bean bedarf bedroom beef beetle befehl
beginn begriff behaviour bein beispiel beitrag belege belief belly benefit bereich bericht berry beruf bescheid besitz
betrag betreff betrieb bicycle biene bier bilanz birne biscuit bitte blanket blatt blend blick blog blouse blut boden
bohne bolt bomb bonus bookmark boot booth borough bounce bracelet bracket brain brake brass braten breakfast breath
breeze brei brew brille broccoli bronze broom brot bruch bruise brunnen bubble bucket buffet bulb bulk bullet bund
bundle burden buro burrow butterfly button cabin cabinet cable cactus cafe cage calendar calf calorie campus canal
candle cannon canteen canvas canyon captain caravan carbon cargo carpet carrot cartoon casino cassette cattle cave
cemetery census ceremony certificate chalk challenge champion chaos cheek cheese chemistry cheque chess chicken chili
chimney chin chip chocolate choir chord chore chorus cigarette cinema circus citizen clause clinic clip clown clue
coconut coffin coin collar colleague column comb comedy comet comfort commerce commute compass complaint compost
compound concert conflict consent console contest context contract contrast cookbook cookie cotton couch cough council
coupon courtesy cousin cradle craftsman crane crate crayon creek creme crisp criterion critic crop crossroads
crossword cruise crust cuisine cupboard curriculum curry curtain cushion custody dach dairy dam dame dampf darm
dashboard database datei daten datenbank datum dauer daydream deadline debate debit decade decay deck decke deckel
decor defense deficit delay delegate delivery demo deposit depth desert dessert diabetes diagram dialect dialogue
diary dice dienst dilemma diploma diplomat discipline discount discovery disease disk display dispute district ditch
divorce dolphin dom domain donor dough download dozen drain drama drang drill drought druck drum duel duft dusk
earthquake easel ebene ecke economy eggplant ehe ei eimer einblick einfall einkauf eintrag eisen elbow elephant elite
embassy empfang emphasis empire employee energie ente enterprise enthusiasm entwurf envelope envy episode erbe erfolg
ernte errand ersatz esel essig estimate etage eule expense expert export extent extra fabric fabrik facade fach faden
fahne fahrplan fahrrad fairy falle fame fantasy farbe fare fass fault faust favor favour feast feder feedback feier
feind fell fence ferien ferry fett fever fiber fibre fiddle figur firewood firma fisch flame flasche flash flask
flavour flea fleisch flesh fliege flock flood flour flucht flug flur flute folge folk football footnote forecast
forehead format formel formula fortune forum fossil foto fountain frage framework franchise freight freude fridge
frieden frist frog frosch frucht fungus furcht gabe gabel gadget galaxy gallery gang garlic gear gebet gebiet geburt
gedanke geduld gefahr gefuhl gehalt geist gemuse genius genre geometry gerat gericht gesang geschenk geschichte gesetz
gesicht gesprach gestalt getrank gewalt gewicht gewinn gewissen ghost giant gips giraffe glas glaube gleis glimpse
glocke glove gluck glue goat goose gossip grab grammar gras gravel greenhouse grenze grid grief griff grill grip
grocery grove grund gruppe gruss guarantee guess guideline guilt guitar gulf gum gurke gute habit haircut haken halle
hallway hals handbook handel handy harbour hardware harvest hase hatred haushalt haut hazard headache headline hedge
heel heft heimat held helmet hemd herbst hierarchy highlight highway hilfe hint hinweis hip hirsch hitze hobby hockey
hohe hohle homework honig honour horizon hose hostel hotkey household hufte huhn humor humour hurricane husten hut
hygiene icon idee idol igel import impulse incident income increase industry ingredient inhalt injury ink inn insect
insel institute interview irony ivory jacke jacket jagd jail jaw jazz jealousy jelly jewelry joint jugend junge jungle
kabel kaffee kamera kamin kamm kampf kanal kante kapitel karton kase kasse kasten kauf kehle kern kerze kette kettle
keyboard kidney kinn kino kiosk kirche kirsche kissen kiste kite kitten klasse kleid klima klinik knee knie knochen
knopf knot knoten kohl kohle komma konto konzept konzert korb korn kosten kraut kreis kreuz krise krone kuche kuchen
kugel kuh kuhlschrank kultur kurs kurve kuss kuste label laden lage lager lampe landlord landscape lange laptop laub
lauf laundry laune lawsuit layout leder lemonade length lens lesezeichen lettuce license lid lied lifestyle lifetime
limb linie linse lip lippe liquid liste livestock lizard lob lobby loch log lohn lottery lounge lucke luft luge lung
lunge lust luxury macht magazine magen magnet mahl mainstream makel makeup maler mall mangel mantel manuscript
marathon marke markt maschine mask matrix mattress mauer maus maximum medal medicine medizin mehl menge menu
merchandise mess metall microphone microscope miete milch milestone minimum miracle misery mitglied mittag mitte
mittel mobel module mond mood moos mosque mosquito motor moustache mucke mud mude mug muhe mull mund munze muscle
museum mushroom musician musik mustard mut myth nachbar nachricht nadel nagel nanny nap napkin nase nebel necklace
needle neffe neighborhood neighbour neighbourhood nephew nerv nerve nest netz nickname niece niere nightmare nonsense
noodle norm notebook notiz nudel nuss nut nutzen oasis oat obst obstacle offense ohr oma omelette onion onkel oper
opera opfer opponent orchard orchestra organ origin orphan outfit outlet outline outlook oven overview owl oxygen
paket palace palast panel panic panne parade paradise paragraph parcel parrot parsley participant passport password
pasta paste pastry patrol pause peanut pear pech pedal pedestrian peer pelz pencil perfume permalink permit personnel
pfad pfanne pferd pflanze pflege pflicht phenomenon philosophy photograph piano picnic pigeon pillow pilz pin
pineapple pitch pizza plage plague plastic platform platte playground plug plugin podcast poetry poison pole
politician polizei poll pond porch pork portfolio portrait potato pottery praxis precedent preise prejudice premise
premium present presse prestige pretext prey prinz prinzip prison privilege prognosis projekt propaganda prospect
protein protest protocol proverb province prozent publikum puls pult pump pumpe pumpkin punch pupil puppe puppet puppy
purse puzzle pyramid quarrel quest questionnaire queue quilt quiz quota rabbit rad radar radish rag rahmen railway
rainbow raincoat raisin rand rasen rash rast ratio ratsel rattle rauch raven razor realm rear rebellion receipt recipe
recipient recovery rectangle referee reform refuge refugee refund regal regel regen regime regret reifen reign reihe
reis reise relief religion remorse rente repair reptile republic request rescue reserve reservoir resident resort
respect response restaurant retreat revenge revenue reverse reward rezept rib ribbon riddle riese rifle rim rind rinde
riot ripple risiko rival roast robbery robot rocket rohr rolle routine rubbish ruck rucksack ruder ruf rug ruhe ruhm
ruin rumor rumour rutsche saal sack sacrifice saddle safari saft sahne salad salat salbe salmon salon salz samen
sample sandbox sandwich satellite satz sau sauce saule savings scarf scenario scenery schaden schaf schal schale scham
schatten schatz schedule scheibe schein scheme schere scherz schicht schild schirm schlaf schlag schlange schloss
schluck schluss schlussel schmerz schmuck schnee schnitt scholar schrank schraube schrei schrift schritt schuh schuss
schutz schwanz schwein schwert scissors scrap scratch screw seam seele segel seide seife seil seite sekunde seminar
senate senf serie series shampoo shark sheep shortcut shovel shrimp sicht sidebar sidewalk sieg sigh silk sink sinn
sitz skeleton sketch skirt skizze skull slave sleeve slice slogan slope smartphone snack snail snake snippet soap
socke socket sofa software sohn soldat sorge sorte soup souvenir spade spalte spass spear species speck spectrum
speise spende sphere spice spiegel spinach spine spinne spitze spoon spott spouse spreadsheet spur squad squirrel
staat stab stadium stahl staircase stake stall stamm stamp statistic statue staub stem stereo stereotype stich stiefel
stil stirn stoff stolz stomach stove strafe strahl strain strand strategy straw strawberry strecke streit strip stroke
strom struktur strumpf studio stufe stuhl sturm submarine suburb suche sucht suden suicide suitcase summe sunde
sunlight sunrise sunset supermarket suppe surgeon surgery surplus survey suspect suspicion swing sword symbol symmetry
sympathy symphony symptom syndrome synonym syntax synthesis syrup tab tabelle tablet tactic tafel tal talent tan tank
tante tanz tap tape tapete tariff tasche tasse tat taube taxi technique tee teig teil telephone telescope tempel
template tenant tent teppich termin terrace terrain textbook theatre theft thema theorem therapie therapy thesis thief
thread threat throat throne thumb ticket tiefe tile timeline tin tinte tissue titel toast tobacco toe toilet tomato
tongue tooth toothbrush topf torch tornado tortoise towel toy trace trail trait trane transcript transport trap trash
traum trauma tray treasury treffen trek treppe treue triangle tribe tribute trick trolley troop trophy trost trousers
trumpet trunk tube tuch tugend tumor tunnel tur turke turkey turtle tutor typ ubersicht ubung uhr umbrella umfang
umsatz umschlag umwelt underwear unfall ungluck uniform universe unterschied upgrade upside urge urlaub ursache urteil
usage vaccine vacuum valley vanilla vehicle vein venue verb verdict vergleich verlag verlauf verlust vermogen vernunft
verrat versand versuch vertrag vertrauen vessel veteran veto victim vieh vinegar violin virtue virus vitamin volcano
volk volleyball volume vorbild vorgang vorhang vormittag vorrat vorschlag vorteil vortrag waage wachs waffe wage wagon
wahl waist wallet walnut wand wange wardrobe ware warehouse warme wasche waste watermelon wealth weapon webinar
website wechsel weekend welfare wende werk werkzeug wert wespe wheelchair whip whistle widow width wiese wille willow
wirt wisdom wissen wit witwe witz wizard wolke wolle workflow workout workplace workshop workspace worm worry wound
wrap wreck wrist wunde wurm wurst wurzel wut yard yarn yield yoga yogurt zahn zange zaun zehe zeichen zeile zelle zelt
zeuge ziege ziegel zitrone zoll zoo zorn zuhause zunge zustand zwang zweck zweifel zweig zwerg zwiebel
"""

EVERYDAY = frozenset(_NOUNS.split())
